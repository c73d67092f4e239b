"""The bounded cache on a device: position p lies in slot p of a buffer that grows up to `max_len` slots."""

from __future__ import annotations

from kvgpu.caches import mask, mem
from kvgpu.caches.parcels import Packing, Run
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import Slots, acceptable, fitting, rows_in
from kvgpu.memory.layout import Place
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical
from kvspec.refusals import common as refusals


class Bounded(Packing):
    """Slots 0..offset-1 are live. The buffer grows by whole steps, the last of them cut at the bound."""

    kind = "bounded"
    misfit = "CACHE-2"

    def __init__(self, config: Config, space: Workspace) -> None:
        if config.max_len is None or not acceptable(config):
            raise refusals.config("CACHE-3", self.kind, config)
        self.config, self.space, self.max_len = config, space, config.max_len
        self.store = Slots(space, config)
        self._forget()

    def _forget(self) -> None:
        self.offset = 0
        self.written = False
        self.queries: int | None = None

    def free(self) -> None:
        """Return to never written, and give the memory back."""
        self.store.adopt(None)
        self._forget()

    def can_append(self, n: int) -> bool:
        """Whether there is room for n rows more."""
        return bool(self.offset + n <= self.max_len)

    def append(self, keys: Array, values: Array) -> None:
        """Write n rows, `[B, H, n, k_dim]` and `[B, H, n, v_dim]`, behind the offset. Raises Refused where they do
        not fit."""
        n = rows_in(keys)
        if not self.can_append(n) and fitting(self.config, keys, values):
            raise refusals.no_room("BOUNDED-2", n, self.offset, self.max_len)
        if n != 0:
            self._write(n, keys, values)
        self.queries = n

    def _write(self, n: int, keys: Array, values: Array) -> None:
        self._put(n, self.store.staged(self.misfit, keys, values))

    def _put(self, n: int, source: Place) -> None:
        """Write n rows of a place behind the offset."""
        rows = self._reaching(self.offset + n)
        self.store.put(n, source, rows, self.offset)
        self.store.adopt(rows)
        self.offset, self.written = self.offset + n, True

    def _reaching(self, end: int) -> Rows:
        """Give the buffer if it has `end` slots; else copy the live rows to a longer one."""
        old, step = self.store.rows, self.config.step
        if old is not None and end <= old.slots:
            return old
        new = self.store.allocated(min((end + step - 1) // step * step, self.max_len))
        if old is not None:
            self.store.move(self.offset, old.place.span(), new.place.span())
        return new

    def needed(self, offset: int) -> range:
        """The positions of all rows."""
        return range(offset)

    def runs(self) -> list[Run]:
        """Where all rows lie."""
        rows = self.store.rows
        return [] if rows is None else [(self.offset, rows.place.span())]

    def has_room(self, offset: int) -> bool:
        """Whether it can hold so many rows."""
        return bool(offset <= self.max_len)

    def take_over(self, rows: Place | None, offset: int) -> None:
        """Hold these rows alone, in a new buffer."""
        self.free()
        if rows is not None:
            self._put(offset, rows)

    def held(self) -> int:
        """Bytes of rows allocated."""
        return mem.held(self.store)

    def read(self, what: Readable) -> Pair | None:
        """All live rows: history, state and view are the same here."""
        there = self.queries is not None if what == "history" else self.written
        return self.store.read(self.offset) if there else None

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""
        return Lengths(self.offset, self.offset, self.offset, self.store.slots)

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last append's queries; slots are in position order."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        return mask.built(self.space, logical, mask.History(self.config.batch, self.queries, self.offset))

    def can_rewind(self, to: int) -> bool:
        """Whether `to` is among the positions there were."""
        return 0 <= to <= self.offset

    def rewind(self, to: int) -> None:
        """Make `to` the offset; nothing on the device changes."""
        if not self.can_rewind(to):
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        self.offset, self.queries = to, None
