"""From a size on: of the config, of the rows given, of what is held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np

from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Event, Where
from kvspec.registry import KINDS, fields_of


def rows_given(event: Event) -> int:
    """How many rows an operation is given; 0 for one that takes none."""
    *_, last = event.arrays or [np.zeros((0, 0))]
    return int(last.shape[0] if event.where.kind == "copy" else last.shape[-2])


def sequences(event: Event) -> int:
    """How many sequences there are in a pool, a ragged block, or a store's batch."""
    told = getattr(event.inner, "sequences", None)
    return len(told() or ()) if callable(told) else 0


SIZED = ("kv_heads", "k_dim", "v_dim")
"""Sizes of every kind."""

OF_BATCHES = ("growing", "ring", "bounded", "sink", "bucket", "ragged")

WRITES = ("append", "attend", "feed", "copy", "prefill", "decode", "block", "encode", "step", "draft", "replay")
WRITES += ("branch", "attend_block")
"""Methods that take rows."""


def views(event: Event) -> list[list[int]]:
    """The sizes in the views of the layers of a cache; none of layers that see everything."""
    words = [word.split(":") for word in (event.config.of or "").split(",")]
    return [[int(size) for size in sizes] for name, *sizes in words if sizes and name != "share"]


def widest(event: Event) -> int:
    """The largest size in the views of the layers."""
    return max(chain.from_iterable(views(event)), default=0)


MEASURES: dict[str, Callable[[Event], int]] = {
    "n": rows_given,
    "length": lambda e: e.length,
    "m": sequences,
    "view": widest,
    "token": lambda e: e.config.kv_heads * e.config.k_dim,
}
"""Sizes that are no field of a config: rows given, rows held, sequences there are, elements of a token's keys."""


def measured(event: Event, size: str) -> int:
    """A size of a call, or of its cache; an adapter's own method has no cache, only rows."""
    if event.where.kind == "adapter":
        shape = dict(zip(("batch", "kv_heads", "n", "k_dim"), event.arrays[0].shape, strict=True))
        return int(shape.get(size, 0))
    return MEASURES[size](event) if size in MEASURES else getattr(event.config, size) or 0


def has(where: Where, size: str) -> bool:
    """Tell whether a method can meet a size."""
    kind = where.kind
    if kind == "adapter":
        return size in ("batch", "kv_heads", "n", "k_dim") and where.method == "rotate"
    if size == "n":
        return where.method in WRITES and where.method not in ("step", "replay", "decode")
    if size == "length":
        return kind in ("growing", "ring", "bounded", "sink", "store", "page", "bucket", "layers")
    if size == "view":
        return kind == "layers"
    if size == "m":
        return kind in ("page", "ragged") or where.method in OF_BATCH
    if size == "batch":
        return kind in OF_BATCHES
    if size == "token":
        return kind in KINDS
    return size in SIZED or (kind in KINDS and size in fields_of(kind)) or (kind in STORED and size in STORED[kind])


OF_BATCH = ("step", "scatter", "rollback_sequence", "reset_batch", "attend_batch", "replay")

STORED = {"round": ("window",), "work": ("layers", "max_len")}


def sizes() -> Iterator[Trigger]:
    """From a size on."""
    for size, starts in FROM.items():
        for start in starts:
            yield from_(start, size)


def from_(start: int, size: str) -> Trigger:
    """From this size on."""
    return Trigger(f"{size} from {start}", "size", lambda e: measured(e, size) >= start, lambda w: has(w, size))


FROM: dict[str, tuple[int, ...]] = {
    "kv_heads": (5, 9, 17, 33, 40, 64),
    "k_dim": (17, 63, 65, 127, 129, 257, 512),
    "v_dim": (33, 128, 256),
    "batch": (4, 9, 17, 33),
    "layers": (5, 9, 33, 60),
    "window": (33, 129, 1025, 2048),
    "max_len": (65, 1025, 4097),
    "page_size": (17, 65, 128),
    "pages": (65, 1025),
    "capacity": (129, 2049),
    "n": (17, 31, 65, 129, 255, 513, 2049),
    "length": (33, 127, 257, 1025, 4097),
    "m": (5, 9, 17, 32),
    "view": (9, 64, 129),
    "token": (1024, 4096),
}
