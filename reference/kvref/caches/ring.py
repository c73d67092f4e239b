"""The rotating cache: a window of W rows, the query included, in storage that does not grow with the context.

One row at a time goes to the slot of the oldest (`_decode`). Several at once are appended behind the newest W-1,
in position order, so that every new query sees its whole window (`_prefill`).
"""

from __future__ import annotations

from kvref.abilities import masks, snapshot
from kvref.abilities.attention import Attending
from kvref.abilities.draft import speculative
from kvref.abilities.parcels import PackingOne
from kvref.abilities.snapshot import Snapshot
from kvref.cite import cite
from kvref.memory import forms, mem
from kvref.memory.rows import Rows, count
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical, Window
from kvspec.refusals import common as refusals
from kvspec.refusals import parcels as refusals_parcels


@speculative
class Ring(snapshot.SavedWhole, PackingOne, Attending):
    """`index` is the slot after the newest row. While offset <= W, slot s holds position s."""

    kind = "ring"
    in_round = False
    window: int

    def __init__(self, config: Config) -> None:
        if not refusals.valid(config) or config.window is None:
            raise refusals.config("CACHE-3", self.kind, config)
        self.config = config
        self.window = config.window
        self._clear()

    def free(self) -> None:
        """Return to never written."""
        cite("CACHE-6")
        self._clear()

    def _clear(self) -> None:
        self.rows = Rows(self.config)
        self.offset = 0
        self.index = 0
        self.written = False
        self.queries: int | None = None

    def can_append(self, n: int) -> bool:
        """Whether an append of n rows would be accepted."""
        cite("ASK-1", "ASK-4")
        return True

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows at positions offset..offset+n-1."""
        new = Pair(keys, values)
        n = count(new)
        if n == 0:
            cite("CACHE-1")
            self.queries = 0
            return
        self.demand_rows(new)
        cite("RING-1", "RING-2", "RING-17", "RING-26")
        if n == 1:
            self._decode(new)
        else:
            self._prefill(new)
        self.offset += n
        self.written = True
        self.queries = n

    def demand_rows(self, new: Pair) -> None:
        """Refuse rows of another geometry."""
        if not (forms.is_encoded(new) or refusals.fits(self.config, new)):
            raise refusals.rows("CACHE-2", self.config, *new)

    def _decode(self, new: Pair) -> None:
        """One row: grow while shorter than the window, cut down to the window, then overwrite the oldest slot."""
        if self.offset >= len(self.rows) and len(self.rows) < self.window:
            cite("RING-21")
            self.rows.grow(len(self.rows) + min(self.config.step, self.window - len(self.rows)), self.buffered)
        if len(self.rows) > self.window:
            cite("RING-20")
            self.rows.keep(len(self.rows) - self.window, len(self.rows))
            self.index = self.window
        if self.index == self.window:
            cite("RING-19")
            self.index = 0
        else:
            cite("RING-22")
        self.rows.write(self.index, new)
        self.index += 1

    def _prefill(self, new: Pair) -> None:
        """Several rows: position order, then the newest W-1 old rows, then all the new ones."""
        self._straighten()
        old = len(self.rows)
        cite("RING-3", "RING-25" if old else "RING-18")
        self.rows.join(new, max(0, old - (self.window - 1)))
        self.index = len(self.rows)

    def _straighten(self) -> None:
        """Put the live rows in position order, and leave nothing else."""
        if self.offset <= self.window:
            if self.index < len(self.rows):
                cite("RING-23")
            self.rows.keep(0, self.index)
        elif self.index < len(self.rows):
            cite("RING-24")
            self.rows.turn(self.index)

    @property
    def buffered(self) -> int:
        """Slots that hold live rows: all but the spare capacity."""
        return min(self.offset, len(self.rows))

    def read(self, what: Readable) -> Pair | None:
        """The history and the state are all buffered rows in slot order."""
        if what == "view":
            return self._view()
        if what == "state" and not self.written:
            return None
        return self.rows.read(0, self.buffered)

    def _view(self) -> Pair | None:
        """The newest W-1 rows at most, oldest first."""
        cite("RING-5")
        slots = self._newest()
        return self.rows.gather(slots) if slots else None

    def _newest(self) -> list[int]:
        """The slots of the rows that RING-5 shows, oldest first."""
        keep = min(self.window - 1, self.buffered)
        return [(self.index - keep + i) % self.buffered for i in range(keep)]

    def aside(self) -> Rows:
        """A copy of the rows that a next query would see beside its own."""
        return self.rows.taken(self._newest())

    def in_order(self) -> list[int]:
        """The slots of all rows held, oldest first."""
        slots = self.buffered
        return [(self.index + s) % slots for s in range(slots)]

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        return min(self.buffered, self.window - 1) + n

    def plan(self, n: int) -> mem.Plan:
        """Bytes held after an append of n rows, and at most during it: MEM-3."""
        return mem.ring(self.config, self.offset, len(self.rows), n)

    def held(self) -> int:
        """Bytes of rows allocated: MEM-1."""
        cite("MEM-1")
        return self.rows.nbytes

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""
        return Lengths(self.offset, self.buffered, self.buffered, len(self.rows))

    def mask(self, logical: Logical) -> Array | None:
        """For one query storage enforces the window, and columns are put in slot order. For several the mask hides
        it."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        if self.queries > 1:
            cite("MASK-8", *([] if logical else ["MASK-3"]))
            logical = (*logical, Window(self.window))
        mask = masks.in_position_order(logical, self.config.batch, self.queries, self.buffered)
        if self.queries == 1 and mask is not None:
            return masks.gathered(mask, self.index, self.buffered)
        return mask

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind to this target would be accepted."""
        cite("CACHE-9")
        return to == self.offset or (0 <= to < self.offset and self.has_all)

    @property
    def has_all(self) -> bool:
        """Whether it has every row there was: none was overwritten, or left behind when it was unpacked."""
        return self.buffered == self.offset <= self.window

    def rewind(self, to: int) -> None:
        """Make `to` the offset. Refused if a row that its window needs was overwritten."""
        if not 0 <= to <= self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        if to < self.offset and self.offset > self.window:
            raise refusals.rewind_window("RING-10", to, self.offset, self.window)
        if to < self.offset and not self.has_all:
            raise refusals_parcels.left_behind("MOVE-11", to, self.offset)
        self.queries = None
        if to == self.offset:
            cite("RING-6")
            return
        cite("RING-7", "CACHE-8", "RING-26", "RING-27")
        self.offset = self.index = to

    def snapshot(self, start: int) -> Snapshot | None:
        """All buffered rows in slot order, with the index; none when nothing lies at or after `start`."""
        cite("SNAP-5")
        if max(0, start) >= self.offset:
            cite("SNAP-2")
            return None
        cite("SNAP-15", "SNAP-28")
        rows, first = self.rows.copy(0, self.buffered), self.offset - self.buffered
        return Snapshot(self.kind, self.config, rows, first, self.offset, self.index)

    def can_restore(self, saved: Snapshot | None, to: int) -> bool:
        """Whether a restore of it to this target would be accepted."""
        cite("ASK-2", "ASK-4")
        if saved is None:
            return to == self.offset or (0 <= to < self.offset and self.has_all)
        return snapshot.accepted(self._demand_saved, saved, to)

    def _demand_saved(self, saved: Snapshot, to: int) -> None:
        """Refuse what cannot be put back, and a target that cannot be reached with it."""
        snapshot.check("restore", saved, self.kind, self.config)
        if not 0 <= to <= saved.stop:
            raise refusals.restore_range("SNAP-8", to, saved.stop)
        if to < saved.stop and saved.stop > self.window:
            raise refusals.restore_window("SNAP-13", to, saved.stop, self.window)
        if to < saved.stop and saved.start > 0:
            raise refusals_parcels.left_behind("MOVE-11", to, saved.stop)

    def restore(self, saved: Snapshot | None, to: int) -> None:
        """Become the saved ring. `to` may be less than its end only if it had not passed its window."""
        if saved is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self._demand_saved(saved, to)
        cite("SNAP-3", "SNAP-4", "SNAP-15")
        self.rows = Rows(self.config)
        self.rows.join(saved.rows)
        self.offset, self.index, self.written = saved.stop, saved.index, True
        self.queries = None
        if to == saved.stop:
            cite("SNAP-12")
        else:
            cite("SNAP-14")
            self.offset = self.index = to

    def needed(self, offset: int) -> list[int]:
        """The positions of the newest W-1 rows."""
        return list(range(max(0, offset - self.window + 1), offset))

    def kept_rows(self) -> Pair:
        """Those rows, oldest first, as they are kept."""
        return self.rows.chosen(self._newest())

    def take_over(self, rows: Pair, offset: int) -> None:
        """Hold these rows alone, oldest first."""
        self._clear()
        if offset:
            self.rows.join(rows)
            self.offset, self.index, self.written = offset, count(rows), True
