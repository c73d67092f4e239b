"""The rotating cache on a device: one buffer, sized once. Rows go round and round in a window of its slots."""

from __future__ import annotations

from kvgpu.caches import mask, mem, snapshot
from kvgpu.caches.attention import Runs
from kvgpu.caches.attention_cache import Attending
from kvgpu.caches.draft import speculative
from kvgpu.caches.parcels import Packing, Run
from kvgpu.caches.snapshot import Snapshot
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import Slots, acceptable, rows_in
from kvgpu.memory.layout import Place, Span, behind
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical, Window
from kvspec.refusals import common as refusals
from kvspec.refusals import parcels as refusals_parcels


@speculative
class Ring(snapshot.SavedWhole, Packing, Attending):
    """The state is `filled` slots from slot `base` of the buffer on; `index` counts from there to after the newest.

    `base` is 0 until a decode drops the oldest rows of a long prefill: they stay where they are, before the base.

    The buffer has room for the window and the longest prefill so far, and is replaced only by a longer one. So it
    holds more slots than the spec's rule of growth would have allocated; `capacity` is what is really there, and
    the adapter claims `grows: free` for this kind.
    """

    kind = "ring"
    misfit = "CACHE-2"
    in_round = False
    window: int

    def __init__(self, config: Config, space: Workspace) -> None:
        if config.window is None or not acceptable(config):
            raise refusals.config("CACHE-3", self.kind, config)
        self.config, self.space = config, space
        self.window = config.window
        self.store = Slots(space, config)
        self._forget()

    def _forget(self) -> None:
        self.offset = self.base = self.filled = self.index = 0
        self.written = False
        self.queries: int | None = None

    def free(self) -> None:
        """Return to never written, and give the memory back."""
        self.store.adopt(None)
        self._forget()

    def can_append(self, n: int) -> bool:
        """Whether n rows can be appended: storage grows, or is used again."""
        return True

    def append(self, keys: Array, values: Array) -> None:
        """Write n rows, `[B, H, n, k_dim]` and `[B, H, n, v_dim]`, at positions offset..offset+n-1; those from
        the host by upload."""
        n = rows_in(keys)
        if n != 0:
            self._write(self.store.staged(self.misfit, keys, values))
        self.queries = n

    def _write(self, source: Place) -> None:
        if source.slots == 1:
            self._decode(source)
        else:
            self._prefill(source)
        self.offset += source.slots
        self.written = True

    def _decode(self, source: Place) -> None:
        """Write one row; in a full window, to the slot of the oldest. Rows beyond the window are dropped first."""
        rows = self.store.rows or self.store.allocated(self.slots_after(1))
        surplus = max(0, self.filled - self.window)
        base, held = self.base + surplus, self.filled - surplus
        slot = (self.window if surplus else self.index) % self.window
        self.store.put(1, source, rows, base + slot)
        self.store.adopt(rows)
        self.base, self.filled, self.index = base, max(held, slot + 1), slot + 1

    def _prefill(self, source: Place) -> None:
        """Write several rows behind the newest W-1 rows, which are moved to the front, the oldest in the first
        slot."""
        n, kept = source.slots, min(self.filled, self.window - 1)
        base, rows = self._in_order(kept, n)
        self.store.put(n, source, rows, base + kept)
        self.store.adopt(rows)
        self.base = base
        self.filled = self.index = kept + n

    def _in_order(self, kept: int, n: int) -> tuple[int, Rows]:
        """Give a buffer with the newest `kept` rows in position order and room for n behind them, and the slot of
        the first of them."""
        rows = self.store.rows
        if rows is None or self.slots_after(n) != rows.slots:
            return 0, self._longer(kept, n)
        if kept == 0:
            return 0, rows
        newest = self.newest(kept)
        begin = newest.first + newest.turn
        if newest.straight(kept) and begin + kept + n <= rows.slots:
            return begin, rows
        self._pull_down(kept)
        return 0, rows

    def _longer(self, kept: int, n: int) -> Rows:
        """A new buffer with room for a full window before n more rows, the newest `kept` rows first in it."""
        rows = self.store.allocated(self.slots_after(n))
        if kept:
            self.store.move(kept, self.newest(kept), rows.place.span())
        return rows

    def slots_after(self, n: int) -> int:
        """Slots of the buffer after an append of n rows; a longer buffer has room for a full window before them."""
        now, kept = self.store.slots, min(self.filled, self.window - 1)
        if n > 1 and kept + n > now:
            return self.window - 1 + n
        return now or (self.window if n else 0)

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        return min(self.filled, self.window - 1) + n if n else self.filled

    def in_order(self) -> Runs:
        """Where all rows lie, oldest first. There must be at least one."""
        return Runs.of(self.newest(self.filled), self.config.kv_heads * self.store.slots)

    def before_drafts(self) -> tuple[int, Span | None]:
        """How many rows a draft sees besides drafts (the newest W-1), and where they lie in position order."""
        seen = min(self.filled, self.window - 1)
        return seen, self.newest(seen) if seen else None

    def keep(self, rows: Rows, seen: int, n: int) -> bool:
        """Append n rows; they lie in a buffer, behind the newest `seen` rows of this ring. Tell whether the ring
        took the buffer.

        Several rows lie there as a prefill would leave them. Nothing is allocated.
        """
        mine = self.store.rows
        self.offset, self.written = self.offset + n, True
        if n == 1 and mine is not None:
            self._decode(behind(rows.place, self.store.geometry, seen))
            return False
        self.base, self.filled, self.index = 0, seen + n, seen + n
        if mine is None or seen + n > mine.slots:
            self.store.adopt(rows)
            return True
        self.store.move(seen + n, rows.place.span(), mine.place.span())
        return False

    def plan(self, n: int) -> mem.Plan:
        """Bytes held after an append of n rows, and at most during it."""
        return mem.planned(self.store, self.slots_after(n))

    def held(self) -> int:
        """Bytes of rows allocated."""
        return mem.held(self.store)

    def newest(self, kept: int) -> Span:
        """Where the newest rows lie, the oldest of them first. There must be at least one."""
        assert self.store.rows is not None and 0 < kept <= self.filled
        return self.store.rows.place.span(self.base, (self.index - kept) % self.filled, self.filled)

    def _pull_down(self, kept: int) -> None:
        """Move the newest rows to the first slots in order; by way of scratch space, because places overlap."""
        newest = self.newest(kept)
        aside = self.space.other(self.store.geometry, kept).span()
        self.store.move(kept, newest, aside)
        self.store.move(kept, aside, newest.place.span())

    def read(self, what: Readable) -> Pair | None:
        """History and state are all held rows as they lie; the view is the newest W-1, oldest first."""
        if what == "view":
            kept = min(self.window - 1, self.filled)
            return self._view(self.newest(kept), kept) if kept else None
        there = self.queries is not None if what == "history" else self.written
        return self.store.read(self.filled, self.base) if there else None

    def _view(self, newest: Span, kept: int) -> Pair:
        return self.store.read(kept, newest.first, newest.turn, newest.wrap)

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""
        return Lengths(self.offset, self.filled, self.filled, self.store.slots)

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last append's queries. For one query storage enforces the window; for several the mask
        does."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        parts = (*logical, Window(self.window)) if self.queries > 1 else logical
        oldest = self.index % self.filled if self.filled else 0
        return mask.built(self.space, parts, mask.History(self.config.batch, self.queries, self.filled, oldest))

    def can_rewind(self, to: int) -> bool:
        """Whether it can rewind: to anywhere until it lacks a row, then only to its own offset."""
        return to == self.offset or (self.filled == self.offset <= self.window and 0 <= to < self.offset)

    def rewind(self, to: int) -> None:
        """Make `to` the offset; nothing on the device changes."""
        if to < 0 or to > self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        if to < self.offset and self.offset > self.window:
            raise refusals.rewind_window("RING-10", to, self.offset, self.window)
        if not self.can_rewind(to):
            raise refusals_parcels.left_behind("MOVE-11", to, self.offset)
        self._cut(to)

    def _cut(self, to: int) -> None:
        """Drop the rows from position `to` on; in a ring that never passed its window, slots are positions."""
        if to < self.offset:
            self.offset = self.filled = self.index = to
        self.queries = None

    def snapshot(self, start: int) -> Snapshot | None:
        """A copy, on the device, of all held rows as they lie; none if no position from `start` on was written."""
        if max(start, 0) >= self.offset:
            return None
        held = self.store.rows  # none of a window of 1 that was unpacked: nothing of it is seen
        runs = () if held is None else ((self.filled, held.place.span(self.base)),)
        rows = snapshot.copied(self.space.runtime, self.store.geometry, *runs)
        return Snapshot(self.kind, self.config, rows, self.offset - self.filled, self.offset, self.index)

    def _demand_within(self, saved: Snapshot, to: int) -> None:
        """`to` may be less than its end only if it had not passed its window."""
        if to != saved.stop and saved.stop > self.window:
            raise refusals.restore_window("SNAP-13", to, saved.stop, self.window)
        if to != saved.stop and saved.start > 0:
            raise refusals_parcels.left_behind("MOVE-11", to, saved.stop)

    def _put_back(self, saved: Snapshot, to: int) -> None:
        """Become the saved ring."""
        held, rows = saved.rows.slots, self.store.rows
        if rows is None or rows.slots < held:
            rows = self.store.allocated(max(self.window, held))
        self.store.move(held, saved.rows.place.span(), rows.place.span())
        self.become(rows, saved.stop, held, saved.index)
        self._cut(to)

    def become(self, rows: Rows, offset: int, held: int, index: int) -> None:
        """Take over a buffer whose first `held` slots are the newest rows, the newest before slot `index`."""
        self.store.adopt(rows)
        self.offset, self.base, self.filled, self.index = offset, 0, held, index
        self.written, self.queries = True, None

    def needed(self, offset: int) -> range:
        """The positions of the newest W-1 rows."""
        return range(max(0, offset + 1 - self.window), offset)

    def runs(self) -> list[Run]:
        """Where those rows lie."""
        kept = min(self.filled, self.window - 1)
        return [(kept, self.newest(kept))] if kept else []

    def take_over(self, rows: Place | None, offset: int) -> None:
        """Hold these rows alone, in a new buffer, oldest first."""
        self.free()
        if rows is not None:
            self._write(rows)
        self.offset, self.written = offset, offset > 0
