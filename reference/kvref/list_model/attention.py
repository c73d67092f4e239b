"""Attention in the list model: what is asked with, when it is refused, and which rows each query sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from kvref.cite import cite
from kvref.list_model.attention_bound import Seen
from kvref.list_model.batch import Sequences
from kvref.list_model.caches import History
from kvspec.geometry import DTYPES, Config
from kvspec.masks import Causal, Explicit, Logical, Part, Window
from kvspec.refusals import attention, common

HIDDEN = float("-inf")


@dataclass(frozen=True)
class Asked:
    """Queries of a shape `[B, heads, n, k_dim]` and what goes with them; `wanted` is the shape they should have,
    None where any size will do. `room` is whether an output is given, `room_fits` whether it is as it should be."""

    shape: tuple[int, int, int, int]
    wanted: tuple[int, int | None, int, int]
    dtype: str
    splits: int
    logical: Logical
    room: bool
    room_fits: bool

    def demand(self, config: Config, rows: int) -> None:
        """Refuse what does not fit, with so many rows to be masked."""
        right = all(w in (None, size) for size, w in zip(self.shape, self.wanted, strict=True))
        if not right or self.dtype != "f32":
            found = SimpleNamespace(shape=self.shape, dtype=DTYPES[self.dtype])
            raise attention.queries("ATTN-24", found, tuple(w or "heads" for w in self.wanted))
        self.demand_how(config)
        self._demand_mask(rows)
        if self.room and not self.room_fits:
            found = SimpleNamespace(shape=(), dtype="an array")
            raise attention.output("ATTN-28", found, (*self.shape[:3], config.v_dim))

    def demand_how(self, config: Config) -> None:
        """Refuse query heads that are no multiple of the kv heads, and splits below 1."""
        if self.heads not in range(config.kv_heads, self.heads + 1, config.kv_heads):
            raise attention.heads("ATTN-25", self.heads, config.kv_heads)
        if self.splits <= 0:
            raise attention.splits("ATTN-26", self.splits)

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return self.shape[1]

    def _demand_mask(self, rows: int) -> None:
        arrays = [p.array for p in self.logical if isinstance(p, Explicit)]
        batch, _, n, _ = self.shape
        for a in arrays:
            if a.ndim != 4 or a.shape[0] not in (1, batch) or a.shape[2] != n:
                raise common.mask_shape("MASK-13", a, batch, n)
            if a.shape[3] not in (1, rows):
                raise common.mask_width("MASK-12", a.shape[3], rows)
        heads = {a.shape[1] for a in arrays if a.shape[1] != 1}
        if heads == {0} or len(heads) > 1:
            raise common.mask_shape("MASK-13", arrays[0], batch, n)
        for size in (p.size for p in self.logical if isinstance(p, Window) and p.size <= 0):
            raise common.mask_window("MASK-13", size)
        if heads - {self.heads}:
            raise attention.mask_heads("ATTN-27", arrays[0], self.heads)

    def sees(
        self, batch: int, end: int, tokens: Sequence[int], visible: Callable[[int], range] | None = None
    ) -> list[list[list[Seen]]]:
        """For each sequence, head and query what it sees of the tokens of positions 0 to end - 1; `visible` are the
        positions that the cache itself shows to a position. A ring of one query has its window from storage."""
        n, heads = self.shape[2], self.heads if any(isinstance(p, Explicit) for p in self.logical) else 1
        whole = [[self._head(b, h, end, n, tokens, visible) for h in range(heads)] for b in range(batch)]
        if any(not seen for each in whole for queries in each for seen in queries):
            cite("ATTN-10")
        return whole

    def _head(
        self, b: int, h: int, end: int, n: int, tokens: Sequence[int], visible: Callable[[int], range] | None
    ) -> list[Seen]:
        found: list[Seen] = []
        for i, position in enumerate(range(end - n, end)):
            first = visible(position).start if visible else 0
            added = {j: self._added(b, h, i, j, position, end) for j in range(first, end)}
            found.append({tokens[j]: each for j, each in added.items() if each is not None})
        return found

    def _added(self, b: int, h: int, i: int, key: int, position: int, end: int) -> list[float] | None:
        """What each array of numbers adds at a key; None where any part hides it."""
        parts = [(p, self._part(p, b, h, i, key, position, end)) for p in self.logical]
        if any(x == HIDDEN for _, x in parts):
            return None
        return [x for p, x in parts if isinstance(p, Explicit) and p.array.dtype != bool]

    def _part(self, part: Part, b: int, h: int, i: int, key: int, position: int, end: int) -> float:
        if isinstance(part, Causal):
            return 0.0 if key <= position else HIDDEN
        if isinstance(part, Window):
            return 0.0 if position - key < part.size else HIDDEN
        batch, heads, _, columns = part.array.shape
        column = 0 if columns == 1 else key - (end - columns)
        cell = part.array[b if batch > 1 else 0, h if heads > 1 else 0, i, column]
        return float(cell) if part.array.dtype != bool else (0.0 if cell else HIDDEN)

    def cite(self) -> None:
        """Cite the clauses of every attend that is not refused."""
        cite("ATTN-2", "ATTN-3", "ATTN-11", "ATTN-15", "ATTN-32", "ATTN-14" if self.room else "ATTN-13")
        cite(*(c for p in self.logical for c in _clauses(p)))

    def as_captured(self, captured: Asked) -> Asked:
        """The same asked of captured work: as many heads as were captured, and everything else as it was then."""
        heads = captured.heads
        return replace(captured, shape=self.shape, wanted=(1, heads, 1, self.wanted[3]), room=False)


def _clauses(part: Part) -> Iterator[str]:
    if isinstance(part, Causal):
        yield "ATTN-4"
    elif isinstance(part, Window):
        yield "ATTN-5"
    else:
        yield "ATTN-7" if part.array.dtype == bool else "ATTN-8"
        if 1 in (part.array.shape[0], part.array.shape[1], part.array.shape[3]):
            yield "ATTN-9"


def rows_held(cache: History, n: int) -> int:
    """Rows that a mask's columns stand for, of a cache that n rows more are appended to."""
    window = cache.config.window
    if window is None:
        return cache.offset + n
    return min(cache.offset + 1, window) if n == 1 else min(cache.offset, window - 1) + n


def whole(batch: Sequences, layer: int) -> None:
    """Refuse a layer that lacks rows of a sequence."""
    for s, one in enumerate(batch.all):
        if len(one.rows[layer]) < one.length:
            raise attention.shorter("ATTN-19", s, layer, len(one.rows[layer]), one.length)


class Work:
    """A captured attend: on which layers, of which of them, and with what."""

    def __init__(self, began: object, layer: int, asked: Asked) -> None:
        self.began, self.layer, self.asked = began, layer, asked

    def replayable(self, began: object) -> None:
        """Refuse a replay on a store that was initialised again."""
        if began is not self.began:
            raise attention.dropped("ATTN-22")
