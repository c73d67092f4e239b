"""The growing cache on a device: position p lies in slot p of a buffer that is replaced by a longer one."""

from __future__ import annotations

from typing import Any

from kvgpu.caches import mask, mem, snapshot
from kvgpu.caches.attention import Runs
from kvgpu.caches.attention_cache import Attending
from kvgpu.caches.draft import speculative
from kvgpu.caches.parcels import Packing, Run
from kvgpu.caches.snapshot import Snapshot
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import Slots, acceptable, rows_in
from kvgpu.memory.layout import Place, Span
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical
from kvspec.refusals import common as refusals


@speculative
class Growing(snapshot.Restoring, Packing, Attending):
    """Slots 0..offset-1 are live. The capacity, the slots of the buffer, follows the spec's rule of growth."""

    kind = "growing"
    misfit = "CACHE-2"
    in_round = False

    def __init__(self, config: Config, space: Workspace) -> None:
        if not acceptable(config):
            raise refusals.config("CACHE-3", self.kind, config)
        self.config, self.space = config, space
        self.store = Slots(space, config)
        self._forget()

    def _forget(self) -> None:
        self.offset = 0
        self.written = False
        self.queries: int | None = None

    def free(self) -> None:
        """Return to never written, and give the memory back."""
        self.store.adopt(None)
        self.store.residual.free()
        self._forget()

    def can_append(self, n: int) -> bool:
        """Whether n rows can be appended: storage grows, or is used again."""
        return True

    def append(self, keys: Array, values: Array) -> None:
        """Write n rows, `[B, H, n, k_dim]` and `[B, H, n, v_dim]`, behind the offset; from the host by upload."""
        n = rows_in(keys)
        if n != 0:
            at, handed = self.offset, self.store.handed(self.misfit, keys, values)
            if self.config.form is None:
                self._write(handed, at)
            else:
                self._write(self.store.codec.in_form(handed), at)
                self.store.residual.take(handed, at)
        self.queries = n

    def _write(self, source: Place, at: int) -> None:
        """Write all rows of the source to the slots from `at` on; rows that lay there or beyond are dead."""
        n = source.slots
        rows = self._room(at, n)
        self.store.put(n, source, rows, at)
        self.store.adopt(rows)
        self.store.residual.reserve()
        self.offset, self.written = at + n, True

    def _room(self, live: int, n: int) -> Rows:
        """The buffer if n rows fit behind the live ones, else a longer one with copies of the live rows."""
        old = self.store.rows
        if old is not None and live + n <= old.slots:
            return old
        new = self.store.allocated(self._slots(live, n))
        if old is not None:
            self.store.move(live, old.place.span(), new.place.span())
        return new

    def _slots(self, live: int, n: int) -> int:
        """Slots of a buffer with n rows behind the live ones."""
        now, step = self.store.slots, self.config.step
        if live + n <= now:
            return now
        return (live if live % step else now) + (n + step - 1) // step * step

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        return self.offset + n

    def slots_after(self, n: int) -> int:
        """Slots of the buffer after an append of n rows."""
        return self._slots(self.offset, n)

    def in_order(self) -> Runs:
        """Where all rows lie; there must be some."""
        assert self.store.rows is not None
        return Runs(self.store.rows.place, self.config.kv_heads * self.store.slots)

    def before_drafts(self) -> tuple[int, Span | None]:
        """How many rows a draft sees besides drafts (all), and where they lie in position order."""
        rows = self.store.rows
        return self.offset, None if rows is None else rows.place.span()

    def plan(self, n: int) -> mem.Plan:
        """Bytes held after an append of n rows, and at most during it."""
        return mem.planned(self.store, self._slots(self.offset, n))

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

    def snapshot(self, start: int) -> Snapshot | None:
        """A copy, on the device, of the rows from position `start` on."""
        start = max(start, 0)
        if self.store.rows is None or start >= self.offset:
            return None
        run = (self.offset - start, self.store.rows.place.span(start))
        rows = snapshot.copied(self.space.runtime, self.store.geometry, run)
        return Snapshot(self.kind, self.config, rows, start, self.offset)

    def _demand_within(self, saved: Snapshot, to: int) -> None:
        """Its rows follow on those held, or lie among them."""
        if saved.start > self.offset:
            raise refusals.restore_gap("SNAP-9", self.offset, saved.start)

    def _put_back(self, saved: Snapshot, to: int) -> None:
        """Write the saved rows to their former slots, then make `to` the offset."""
        self._write(saved.rows.place, saved.start)
        self.offset, self.queries = to, None
        self.store.residual.settle(to)

    def needed(self, offset: int) -> range:
        """The positions of all rows."""
        return range(offset)

    def runs(self) -> list[Run]:
        """Where all rows lie."""
        rows = self.store.rows
        return [] if rows is None else [(self.offset, rows.place.span())]

    def take_over(self, rows: Place | None, offset: int) -> None:
        """Hold these rows alone, in a new buffer."""
        self.free()
        if rows is not None:
            self._write(rows, 0)
            self.store.residual.settle(offset)

    def merge(self, parent: Any, child: Any) -> Snapshot | None:
        """[a, b) and [b, c) give [a, c)."""
        first, second = snapshot.demand_pieces((parent, child), self.kind, self.config, self.space.runtime)
        if first is None or second is None:
            only = first or second
            return only and only.passed_on()
        if second.start != first.stop:
            raise refusals.not_meeting("SNAP-18", (first.start, first.stop), (second.start, second.stop))
        return snapshot.joined(first, second)

    def split(self, saved: Any, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """Split [a, c) into [a, at) and [at, c); where `at` is beyond an end, into the whole and none."""
        if saved is None:
            return None, None
        found = snapshot.demand("split", saved, self.kind, self.config, self.space.runtime)
        if at <= found.start:
            return None, found.passed_on()
        if at >= found.stop:
            return found.passed_on(), None
        return snapshot.cut(found, at)
