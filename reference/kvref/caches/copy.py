"""The buffer that copies go into: allocated once, written row by row, and handed out whole."""

from __future__ import annotations

import math

import numpy as np

from kvref.arithmetic.casts import narrowed, narrows
from kvref.cite import cite
from kvref.memory import forms, mem, meter
from kvspec.contract import Pair, Readable
from kvspec.geometry import DTYPES, WORDS, Array, Config
from kvspec.refusals import common as refusals


class Own(meter.Resident):
    """A buffer's own rows as they are read, for a source that is refused."""


class Buffer:
    """`keys` and `values` lie as the layout says; `slots` shows both with the slot first, whatever the layout."""

    kind = "copy"

    def __init__(self, config: Config) -> None:
        known = config.layout in WORDS["layout"]
        if not (refusals.valid(config) and config.capacity and config.batch == 1 and known):
            raise refusals.config("CACHE-3", self.kind, config)
        cite("COPY-1")
        self.config, self.kept = config, forms.Kept(config)
        self.capacity = config.capacity
        self.keys, self.values = (meter.zeros(self._shape(a.shape[3]), a.dtype) for a in self.kept.none())

    @property
    def _dims(self) -> tuple[int, int]:
        return self.config.k_dim, self.config.v_dim

    def _shape(self, dim: int) -> tuple[int, int, int]:
        if self.config.layout == "token":
            return self.capacity, self.config.kv_heads, dim
        return self.config.kv_heads, self.capacity, dim

    @property
    def slots(self) -> Pair:
        """Views `[capacity, kv_heads, dim]` of both, as they are kept."""
        if self.config.layout == "token":
            cite("COPY-2")
            return Pair(self.keys, self.values)
        cite("COPY-3")
        return Pair(self.keys.transpose(1, 0, 2), self.values.transpose(1, 0, 2))

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        """Write the first n rows, one after another, into the slots from `at` on; positions in range are slots."""
        source = Pair(keys, values)
        if n == 0 or not any(math.prod(a.shape[1:]) for a in source):
            cite("COPY-8")
            return
        self._demand_rows(source, n)
        self._demand_place(n, at, sliding)
        if len(keys) > n:
            cite("COPY-7")
        if n > self.capacity:
            cite("COPY-6")
        cite("COPY-9")
        rows = self._encoded(Pair(*(self._cast(a[:n]) for a in source)))
        for i in range(n):
            cite("COPY-5" if sliding else "COPY-4")
            self._write((at + i) % self.capacity, rows, i)

    def _demand_rows(self, source: Pair, n: int) -> None:
        """Refuse a source that is not fit for n rows."""
        wanted = [(self.config.kv_heads, dim) for dim in self._dims]
        if [a.shape[1:] for a in source] != wanted or source.keys.shape[:1] != source.values.shape[:1]:
            raise refusals.copy_geometry("COPY-17", self.config, *source)
        if not all(self._takes(a) for a in source) or source.keys.dtype != source.values.dtype:
            raise refusals.copy_cast("COPY-18", self.config, *source)
        own = any(isinstance(a, Own) and a.size for a in source)
        if own or any(np.shares_memory(a, mine) for a in source for mine in (self.keys, self.values)):
            raise refusals.copy_overlap("COPY-19", n)
        if len(source.keys) < n:
            raise refusals.copy_short("COPY-20", self.config, len(source.keys), n)

    def _demand_place(self, n: int, at: int, sliding: bool) -> None:
        """Refuse slots that do not exist."""
        if at < 0:
            raise refusals.copy_before("COPY-21", at)
        if not sliding and at + n > self.capacity:
            raise refusals.copy_beyond("COPY-22", at, n, self.capacity)

    def _takes(self, array: Array) -> bool:
        return any(array.dtype == DTYPES[d] and narrows(d, self.config.dtype) for d in DTYPES)

    def _cast(self, array: Array) -> Array:
        if array.dtype == DTYPES[self.config.dtype]:
            cite("COPY-11")
            return array
        return narrowed(array, self.config.dtype).view(type(array))

    def _encoded(self, rows: Pair) -> Pair:
        """Rows `[n, kv_heads, dim]` as they are kept."""
        kept = self.kept.encoded(Pair(*(a[:, :, None] for a in rows)))
        return Pair(*(a[:, :, 0] for a in kept))

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        meter.write(self.slots.keys[slot], rows.keys[i])
        meter.write(self.slots.values[slot], rows.values[i])

    def alias(self, source: int, n: int) -> tuple[Array, Array]:
        """The buffer's own slots as a source: memory of its own."""
        slots = self.slots if self.config.form is None else self.shown()
        keys, values = (a[source : source + n] for a in slots)
        return keys, values

    def shown(self) -> Pair:
        """Rows `[capacity, kv_heads, dim]` of a form as they are read."""
        rows = self.kept.decoded(Pair(*(a[:, :, None] for a in self.slots)))
        return Pair(*(a[:, :, 0].view(Own) for a in rows))

    def plan(self, n: int) -> mem.Plan:
        """What is held, whatever is copied into it."""
        return self.held(), self.held()

    def held(self) -> int:
        """Bytes of all slots."""
        cite("MEM-5")
        self.kept.cite_bytes()
        return self.keys.nbytes + self.values.nbytes

    def read(self, what: Readable) -> Pair:
        """Copies of both, whole and in their layout."""
        if self.config.form is None:
            return Pair(meter.fetched(self.keys), meter.fetched(self.values))
        rows = (meter.fetched(a) for a in self.shown())
        return Pair(*(a if self.config.layout == "token" else a.transpose(1, 0, 2) for a in rows))
