"""Bugs of masks, windows, padding, grouped heads, batches and graphs, planted in the reference's attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvadapters.reference import Reference
from kvconform.mutants.planting import having, planted
from kvconform.mutants.real.store import RoomForOne
from kvref import attention, strict_attention
from kvref.attention import Seen
from kvref.attention_store import CapturedAttention
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.store import Store
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Part, Window

Attended = Callable[[Array, Pair, Seen, int], Array]
"""Makes an output of queries, the rows held, what is seen of them, and splits."""

OtherPart = Callable[[Part, int], Part]
"""Takes a part of a mask, for so many query heads, for another one."""


def answering(wrong: Attended) -> Callable[[], Reference]:
    """Makes the reference whose caches all make this of queries and rows."""

    def attended(self: Any, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        return wrong(queries, held, seen, splits)

    return having(**{c.kind: type("Answering", (c,), {"attended": attended}) for c in (Growing, Ring, Store)})


def changed(other: OtherPart) -> Attended:
    """Attention through other parts of the mask."""

    def wrong(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        logical = tuple(other(part, queries.shape[1]) for part in seen.logical)
        return attention.attended(queries, held, Seen(logical, seen.rows, seen.end), splits)

    return wrong


def masking(other: OtherPart) -> Callable[[], Reference]:
    """Makes the reference whose caches all take each part of a mask for this one."""
    return answering(changed(other))


@planted("GQA-01", breaks="ATTN-2", into=answering)
def remainder(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """Query head h reads kv head h % kv_heads."""
    heads, kv_heads = queries.shape[1], held.keys.shape[1]
    order = np.arange(heads).reshape(-1, kv_heads).T.reshape(-1)
    found = np.empty((*queries.shape[:3], held.values.shape[3]), np.float32)
    found[:, order] = attention.attended(queries[:, order], held, seen, splits)
    return found


@planted("GQA-04", breaks="ATTN-9", anomaly="wrong-mask", into=masking)
def over_kv_heads(part: Part, heads: int) -> Part:
    """A mask's heads are taken for kv heads instead of query heads."""
    if not isinstance(part, Explicit) or part.array.shape[1] == 1:
        return part
    return Explicit(np.repeat(part.array[:, :1], heads, axis=1))


@planted("MASK-09", breaks="ATTN-10", into=answering)
def no_row_no_number(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """A query that sees no row gets NaN, the softmax of nothing."""
    batch, heads, n, _ = queries.shape
    blind = (seen.asked(batch, heads, n).added == -np.inf).all(-1)
    found = attention.attended(queries, held, seen, splits)
    return np.where(blind[..., None], np.float32(np.nan), found)


@planted("MASK-21", breaks="ATTN-4", anomaly="logical-order-mask", into=answering)
def upper_left(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """The causal mask is aligned at the upper left corner instead of the lower right."""
    triangle = Explicit(np.tril(np.ones((queries.shape[2], seen.rows), np.bool_))[None, None])
    return changed(lambda p, *_: triangle if isinstance(p, Causal) else p)(queries, held, seen, splits)


@planted("MASK-23", breaks="ATTN-4", into=answering)
def only_without_history(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """Where there is a history, nothing is masked."""
    logical: Logical = seen.logical if seen.rows == queries.shape[2] else ()
    return attention.attended(queries, held, Seen(logical, seen.rows, seen.end), splits)


@planted("MASK-04", breaks="ATTN-7", into=masking)
def added_as_floats(part: Part, heads: int) -> Part:
    """A boolean mask is added to the scores as 1 and 0."""
    if not isinstance(part, Explicit) or part.array.dtype != bool:
        return part
    return Explicit(part.array.astype(np.float32))


@planted("DTYPE-06", breaks="ATTN-7", anomaly="wrong-mask", into=masking)
def nearly_zero(part: Part, heads: int) -> Part:
    """Hidden scores get the smallest normal number added instead of minus infinity."""
    if not isinstance(part, Explicit) or part.array.dtype != bool:
        return part
    return Explicit(np.where(part.array, np.float32(0), np.float32(1.17549435e-38)))


def beyond_the_first(part: Part, heads: int) -> Part:
    """A mask made for one sequence, read with a stride for several: behind it is nothing."""
    if not isinstance(part, Explicit) or part.array.shape[0] != 1:
        return part
    rest = np.zeros_like(part.array) if part.array.dtype == bool else np.full_like(part.array, -np.inf)
    return Explicit(np.concatenate([part.array, rest]))


@planted("MASK-14", breaks="ATTN-9", anomaly="wrong-sequence", into=answering)
def in_batches_of_two(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """In a batch of two the second sequence reads behind a mask made for one sequence, and sees nothing."""
    wrong = changed(beyond_the_first) if queries.shape[0] == 2 else attention.attended
    return wrong(queries, held, seen, splits)


@planted("WIN-02", breaks="ATTN-5", into=masking)
def one_more(part: Part, heads: int) -> Part:
    """The window includes one row too many: q - k <= W."""
    return Window(part.size + 1) if isinstance(part, Window) else part


@planted("PAD-03", breaks="ATTN-11", into=answering)
def zeros_too(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """The last block is filled up with rows of zeros that are not masked."""
    batch, heads, n, _ = queries.shape
    asked, rest = seen.asked(batch, heads, n), -seen.rows % 8
    keys, values = (np.pad(a, [(0, 0), (0, 0), (0, rest), (0, 0)]) for a in held)
    added = np.pad(asked.added, [(0, 0)] * 3 + [(0, rest)])
    return strict_attention.attend(
        np.asarray(queries), keys, values, seen.end - seen.rows, asked._replace(added=added), splits
    )


@planted("PAD-09", breaks="ATTN-11")
class WholeBuffer(Growing):
    """Attention covers every slot, written or not."""

    def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        batch, heads, n, _ = queries.shape
        asked, spare = seen.asked(batch, heads, n), len(self.rows) - self.offset
        added = np.pad(asked.added, [(0, 0)] * 3 + [(0, spare)])
        wide = strict_attention.Asked(added, asked.low, asked.high + spare)
        return strict_attention.attend(np.asarray(queries), self.rows.keys, self.rows.values, 0, wide, splits)


@planted("RING-02", breaks="ATTN-6", anomaly="lost-rows")
class AfterEviction(Ring):
    """A chunk attends only to the rows that the window keeps after it."""

    def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        rows = min(seen.rows, max(self.window, queries.shape[2]))
        kept = Pair(*(a[:, :, seen.rows - rows :] for a in held))
        wide = any(isinstance(p, Explicit) for p in seen.logical)
        return super().attended(
            queries, *((held, seen) if wide else (kept, Seen(seen.logical, rows, seen.end))), splits
        )


@planted("MASK-10", breaks="ATTN-23 ATTN-27", anomaly="logical-order-mask")
class FullWidth(Ring):
    """A mask as wide as the context is cut at the wrong end."""

    def attend(
        self, queries: Array, keys: Array, values: Array, how: Attention, out: Any = None, of: Any = None
    ) -> Array:
        n = keys.shape[2]
        held = self.held_after(n)
        parts = (
            Explicit(p.array[..., :held]) if isinstance(p, Explicit) and p.array.shape[-1] == self.offset + n else p
            for p in how.through
        )
        return super().attend(queries, keys, values, how._replace(through=tuple(parts)), out, of)


@planted("POS-16", breaks="ATTN-1", anomaly="hole")
class SlotLeftOut(Growing):
    """A single row is written one slot too far."""

    def attend(
        self, queries: Array, keys: Array, values: Array, how: Attention, out: Any = None, of: Any = None
    ) -> Array:
        if keys.shape[2] == 1 and self.offset:
            self.append(np.full_like(keys, np.nan), np.full_like(values, np.nan))
        return super().attend(queries, keys, values, how, out, of)


@dataclass
class Remembering:
    """Captured work that writes where it wrote first."""

    work: CapturedAttention
    length: int

    def replay(self, queries: Array, keys: Array, values: Array) -> Array:
        if self.work.store.keys is self.work.memory:
            self.work.store.lengths_[self.work.layer] = self.length
        return self.work.replay(queries, keys, values)


@planted("ASYNC-06", breaks="ATTN-21")
class Remembers(Store):
    """Captured attention uses the length of the moment of capture."""

    def capture_attend(self, layer: int, heads: int, splits: int = 1) -> Any:
        return Remembering(super().capture_attend(layer, heads, splits), self.lengths_[layer])


@planted("BOUND-02", breaks="ATTN-23")
class AttendsWithRoomForOne(RoomForOne):
    """The check for room assumes one row, however many are attended with."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        super().append(keys, values, layer)
        self.lengths_ = [min(n, self.max_len) for n in self.lengths_]
