"""Speculation: in a round, drafts stand behind the rows of caches until a commit says how many are kept.

Here drafts lie beside their cache, never in it. So nothing has to be undone, and a commit is one append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from kvref import attention, masks
from kvref.cite import cite
from kvref.memory.rows import Rows, count
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.masks import Logical, Window
from kvspec.refusals import common as refusals

Kind = TypeVar("Kind", bound=type)

REFUSED = (
    *("append", "attend", "read", "mask", "rewind", "free", "snapshot", "restore", "merge", "split", "plan"),
    *("pack", "unpack"),
)
"""What a cache refuses while a round is open on it."""

ANSWERED_NO: dict[str, tuple[str, tuple[int, ...]]] = {
    "can_rewind": ("DRAFT-13", ()),
    "can_append": ("ASK-3", (0,)),
    "can_restore": ("ASK-3", ()),
}
"""The questions that are then answered by no, each with its clause, and what is accepted all the same."""

NOTHING: dict[str, Callable[..., bool]] = {
    "append": lambda keys, values: count(Pair(keys, values)) == 0,
    "attend": attention.nothing,
}
"""When such an operation has nothing to do, so that it is not refused. Each test takes the first argument."""


def speculative(kind: Kind) -> Kind:
    """Make a cache class that can enter rounds. During a round the cache refuses every operation that would change
    it."""
    for name in (n for n in REFUSED if hasattr(kind, n)):
        setattr(kind, name, _refusing(name, getattr(kind, name)))
    for name in (n for n in ANSWERED_NO if hasattr(kind, n)):
        setattr(kind, name, _no(getattr(kind, name), *ANSWERED_NO[name]))
    return kind


def _refusing(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(operation)
    def guarded(cache: Any, *arguments: Any) -> Any:
        if cache.in_round and not (name in NOTHING and NOTHING[name](*arguments[:2])):
            raise refusals.in_round("DRAFT-12", name)
        return operation(cache, *arguments)

    return guarded


def _no(asked: Callable[..., bool], clause: str, what: tuple[int, ...]) -> Callable[..., bool]:
    @wraps(asked)
    def guarded(cache: Any, *about: Any) -> bool:
        if cache.in_round and about != what:
            cite(clause)
            return False
        return asked(cache, *about)

    return guarded


class Layer:
    """One cache of a round: what its first draft sees beside itself, in position order, and the drafts behind."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.start = cache, cache.offset
        self.rows: Rows = cache.aside()
        self.before = len(self.rows)
        self.queries: int | None = None

    @property
    def drafts(self) -> int:
        """How many there are."""
        return len(self.rows) - self.before

    def draft(self, new: Pair) -> None:
        """Put n drafts behind those there are."""
        if count(new) == 0:
            cite("DRAFT-7")
        elif not refusals.fits(self.cache.config, new):
            raise refusals.rows("DRAFT-8", self.cache.config, *new)
        else:
            cite("DRAFT-1", "DRAFT-3" if self.window else "DRAFT-2", "DRAFT-4", "DRAFT-9")
            self.rows.join(new)
        self.queries = count(new)

    @property
    def window(self) -> int | None:
        """The window of a ring."""
        window: int | None = self.cache.config.window
        return window

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last drafts. Rows are in position order, so one query needs the window as well."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        cite("DRAFT-6")
        if self.window:
            cite("DRAFT-5")
            logical = (*logical, Window(self.window))
        return masks.in_position_order(logical, self.cache.config.batch, self.queries, len(self.rows))

    def keep(self, n: int) -> None:
        """Append the first n drafts to the cache: nothing if there are none, decode if it is one, else prefill."""
        cite("DRAFT-18", "DRAFT-19", "DRAFT-22", "DRAFT-25")
        self.cache.append(*self.rows.part(self.before, self.before + n))


class Round:
    """A round over at most one cache a layer; `layers` holds the caches by the number of their layer."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        given = {i: cache for i, cache in enumerate(caches) if cache is not None}
        demand(given)
        cite("DRAFT-10", *(["DRAFT-17"] if len(given) < len(caches) else []))
        self.layers = {i: Layer(cache) for i, cache in given.items()}
        self.isolated, self.over = isolated, ""
        if not isolated:
            self._hold(True)

    def _hold(self, held: bool) -> None:
        """Let the caches enter or leave the round; both end the history of the append before."""
        cite("DRAFT-11", "DRAFT-14")
        for layer in self.layers.values():
            layer.cache.in_round, layer.cache.queries = held, None

    def draft(self, layer: int, keys: Array, values: Array) -> None:
        """Append n drafts on one layer."""
        self._demand_open("draft")
        self.layers[layer].draft(Pair(keys, values))
        cite(*(("DRAFT-26", "DRAFT-27") if self.isolated else ("DRAFT-11",)))

    def read(self, layer: int) -> Pair:
        """The history of the drafts just before."""
        rows = self.layers[layer].rows
        return rows.read(0, len(rows))

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """The mask for that history."""
        self._demand_open("mask")
        return self.layers[layer].mask(logical)

    def offset(self, layer: int) -> int:
        """The position after the last draft."""
        return int(self.layers[layer].start + self.layers[layer].drafts)

    def commit(self, n: int) -> None:
        """Keep the first n drafts on every layer, and end the round."""
        self._demand_open("commit")
        if self.isolated:
            raise refusals.isolated("DRAFT-28")
        kept = [min(max(0, n), layer.drafts) for layer in self.layers.values()]
        if len(set(kept)) > 1:
            raise refusals.uneven("DRAFT-23", n, kept)
        self._end("committed")
        cite(*(["DRAFT-20"] if {n} != set(kept) else []), *(["DRAFT-21"] if not any(kept) else []))
        for layer, n in zip(self.layers.values(), kept, strict=True):
            layer.keep(n)
            layer.cache.queries = None

    def abandon(self) -> None:
        """End the round and keep nothing."""
        self._demand_open("abandon")
        cite("DRAFT-21", "DRAFT-22")
        self._end("abandoned")

    def _end(self, how: str) -> None:
        self.over = how
        if not self.isolated:
            self._hold(False)

    def _demand_open(self, what: str) -> None:
        if self.over:
            raise refusals.round_over("DRAFT-24", what, self.over)


def demand(given: dict[int, Any]) -> None:
    """Refuse what cannot enter a round, before anything is made."""
    layers = {id(cache): i for i, cache in reversed(given.items())}
    for i, cache in given.items():
        if not hasattr(cache, "in_round"):
            raise refusals.cannot_speculate("DRAFT-16", i, cache.kind)
        if layers[id(cache)] != i:
            raise refusals.twice("DRAFT-15", layers[id(cache)], i)
        if cache.in_round:
            raise refusals.in_round("DRAFT-15", "speculate")
