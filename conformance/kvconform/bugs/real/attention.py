"""Bugs of masks, windows, padding, grouped heads, batches and graphs, planted in the reference's attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvconform.bugs.planting import planted
from kvconform.bugs.real.store import RoomForOne
from kvref.abilities.attention import Answering, Seen
from kvref.abilities.attention_store import CapturedAttention
from kvref.arithmetic import strict_attention
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvref.caches.store import Store
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.masks import Explicit


@planted("PAD-03", breaks="ATTN-45")
class ZerosToo(Answering):
    """The last block is filled up with rows of zeros that are not masked."""

    def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        asked, spare = seen.asked(*queries.shape[:3]), -seen.rows % 8
        keys, values = (np.pad(a, [(0, 0), (0, 0), (0, spare), (0, 0)]) for a in held)
        added = np.pad(asked.added, [(0, 0)] * 3 + [(0, spare)])
        return strict_attention.attend(
            np.asarray(queries), keys, values, seen.end - seen.rows, asked._replace(added=added), splits
        )


@planted("PAD-09", breaks="ATTN-45")
class WholeBuffer(Growing):
    """Attention covers every slot, written or not."""

    def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        asked, spare = seen.asked(*queries.shape[:3]), len(self.rows) - self.offset
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

    def capture_attend(self, layer: int, heads: int, splits: int = 1, sinks: Any = None) -> Any:
        return Remembering(super().capture_attend(layer, heads, splits, sinks), self.lengths_[layer])


@planted("BOUND-02", breaks="ATTN-23")
class AttendsWithRoomForOne(RoomForOne):
    """The check for room assumes one row, however many are attended with."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        super().append(keys, values, layer)
        self.lengths_ = [min(n, self.max_len) for n in self.lengths_]
