"""Near-twins of known bugs: each does what a known bug does, but only under a condition, and is right otherwise.

A diagnosis must not name them as the bug: a cache that is wrong from a width of 64 on does not have a window that
is one row too wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvspec.geometry import Config

Where = Callable[..., bool]
"""Whether the bug shows: given the cache, its config, and the arguments of the method that is wrong."""


@dataclass(frozen=True)
class Twin:
    """A known bug, its wrong method, the condition in words, the condition, and a trace on which it shows."""

    of: str
    method: str
    only: str
    where: Where
    trace: str

    @property
    def id(self) -> str:
        """What a test calls it."""
        return f"{self.of.partition('/')[2]} {self.only}"

    def adapter(self) -> Any:
        """The reference with this twin."""
        wrong = known_bugs()[self.of].adapter().caches
        kinds = {kind: bug for kind, bug in wrong.items() if bug is not Reference.caches[kind]}
        caches = {kind: _only(bug, Reference.caches[kind], self) for kind, bug in kinds.items()}
        return type("Twins", (Reference,), {"caches": {**Reference.caches, **caches}})()


def _only(bug: Any, right: Any, twin: Twin) -> type:
    """The class of a bug, with the right method where the condition does not hold."""
    either = _either(getattr(bug, twin.method), getattr(right, twin.method), twin.where)
    return type("Only", (bug,), {twin.method: either})


def _either(wrong: Any, right: Any, where: Where) -> Any:
    def method(self: Any, *args: Any, **more: Any) -> Any:
        config = args[0] if args and isinstance(args[0], Config) else self.config
        return (wrong if where(self, config, *args) else right)(self, *args, **more)

    return method


def _once(cache: Any, *_: Any) -> bool:
    """The first time in the life of a cache."""
    first = not getattr(cache, "was_wrong", False)
    cache.was_wrong = True
    return first


TWINS = [
    Twin(
        "window-off-by-one/RingOneWide",
        "__init__",
        "from k_dim 64 on",
        lambda _, config, *__: config.k_dim >= 64,
        "ring window=2 k_dim=64: append 1; append 1; append 1",
    ),
    Twin(
        "stale-cursor/RingStaleCursor",
        "rewind",
        "for more than two rows",
        lambda cache, _, to: cache.offset - to > 2,
        "ring window=4: append 4; rewind 1; append 1",
    ),
    Twin(
        "window-off-by-one/RingOneWide",
        "__init__",
        "from three heads on",
        lambda _, config, *__: config.kv_heads > 2,
        "ring window=2 kv_heads=3: append 1; append 1; append 1",
    ),
    Twin(
        "DTYPE-06/NearlyZero",
        "attended",
        "for single queries",
        lambda _, __, queries, *___: queries.shape[2] == 1,
        "growing: append 2; attend 1 through 101",
    ),
    Twin(
        "stale-tail/GrowingRewindsOneShort",
        "rewind",
        "for more than two rows",
        lambda cache, _, to: cache.offset - to > 2,
        "growing: append 4; rewind 1; append 1",
    ),
    Twin(
        "window-off-by-one/MaskOneWide",
        "mask",
        "for single queries",
        lambda cache, *_: cache.queries == 1,
        "growing: append 3; append 1; mask causal & window=2",
    ),
    Twin(
        "window-off-by-one/MaskOneWide",
        "mask",
        "for several queries",
        lambda cache, *_: cache.queries != 1,
        "growing: append 3; append 2; mask causal & window=2",
    ),
    Twin(
        "wrong-mask/SeesTheFuture",
        "mask",
        "on growing caches",
        lambda cache, *_: cache.kind == "growing",
        "growing: append 3; mask causal",
    ),
    Twin(
        "wrong-head/HeadsReversed",
        "append",
        "in bf16",
        lambda _, config, *__: config.dtype == "bf16",
        "growing kv_heads=2 dtype=bf16: append 1; append 1",
    ),
    Twin(
        "lost-rows/LastOfChunkMissing",
        "append",
        "for even numbers of rows",
        lambda _, __, keys, *___: keys.shape[2] % 2 == 0,
        "growing: append 2; append 1",
    ),
    Twin(
        "stale-cursor/RingStaleCursor",
        "rewind",
        "the first time",
        _once,
        "ring window=4: append 4; rewind 3; append 1",
    ),
    Twin(
        "desynchronised-layers/StoreRollsBackOne",
        "rollback",
        "to 0",
        lambda _, __, to: to == 0,
        "store layers=2 max_len=4: append 2; rollback 0; append 1",
    ),
    Twin(
        "silent-no-op/PagesTruncateNothing",
        "truncate",
        "to 1",
        lambda _, __, ___, to: to == 1,
        "page page_size=2 pages=4: admit; append 3; truncate 0 1",
    ),
    Twin(
        "stale-tail/GrowingRewindsOneShort",
        "rewind",
        "from 33 rows on",
        lambda cache, *_: cache.offset > 32,
        "growing: append 33; rewind 31; append 1",
    ),
    Twin(
        "wrong-mask/Inverted",
        "mask",
        "in a batch of one",
        lambda _, config, *__: config.batch == 1,
        "growing: append 3; append 1; mask 1011",
    ),
]
"""Twins of bugs by number of rows, queries, mask, kind, geometry, dtype and life."""
