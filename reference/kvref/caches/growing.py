"""The growing cache: every row is kept, at the slot that is its position."""

from __future__ import annotations

from kvref.abilities import masks, snapshot
from kvref.abilities.attention import Attending
from kvref.abilities.draft import speculative
from kvref.abilities.parcels import PackingOne
from kvref.abilities.snapshot import Snapshot
from kvref.cite import cite
from kvref.memory import forms, mem
from kvref.memory.residual import Residual, rows_of
from kvref.memory.rows import Rows, count
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical
from kvspec.refusals import common as refusals


@speculative
class Growing(PackingOne, Attending):
    """Position p lies in slot p; `rows` holds the offset's live rows and the spare capacity behind them."""

    kind = "growing"
    in_round = False

    def __init__(self, config: Config) -> None:
        if not refusals.valid(config):
            raise refusals.config("CACHE-3", self.kind, config)
        self.config = config
        self._clear()

    def free(self) -> None:
        """Return to never written."""
        cite("CACHE-6")
        self._clear()

    def _clear(self) -> None:
        self.rows: Rows = rows_of(self.config)
        self.offset = 0
        self.written = False
        self.queries: int | None = None

    def can_append(self, n: int) -> bool:
        """Whether an append of n rows would be accepted."""
        cite("ASK-1", "ASK-4")
        return True

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows at positions offset..offset+n-1."""
        new = Pair(keys, values)
        if count(new) == 0:
            cite("CACHE-1")
            self.queries = 0
            return
        self.demand_rows(new)
        self._feed(new)
        self.queries = count(new)

    def demand_rows(self, new: Pair) -> None:
        """Refuse rows of another geometry."""
        if not (forms.is_encoded(new) or refusals.fits(self.config, new)):
            raise refusals.rows("CACHE-2", self.config, *new)

    def _feed(self, new: Pair) -> None:
        """Write rows behind the offset; grow if they do not fit."""
        n, step = count(new), self.config.step
        if self.offset + n > len(self.rows):
            kept = len(self.rows)
            if self.offset % step != 0:
                cite("GROW-17")
                kept = self.offset
            cite("GROW-16")
            self.rows.grow(kept + -(-n // step) * step, self.offset)
        else:
            cite("GROW-18")
        cite("GROW-1", "GROW-2", "GROW-14")
        self.rows.write(self.offset, new)
        self.offset += n
        self.written = True

    def read(self, what: Readable) -> Pair | None:
        """The history is all rows, as are the view and the state."""
        if what == "view":
            cite("GROW-4")
        if what != "history" and not self.written:
            cite("GROW-15")
            return None
        return self.rows.read(0, self.offset)

    def aside(self) -> Rows:
        """A copy of the rows that a next query would see beside its own."""
        return self.rows.taken(list(range(self.offset)))

    def in_order(self) -> list[int]:
        """The slots of all rows held, oldest first."""
        return list(range(self.offset))

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        return self.offset + n

    def plan(self, n: int) -> mem.Plan:
        """Bytes held after an append of n rows, and at most during it."""
        return mem.growing(self.config, self.offset, len(self.rows), n)

    def held(self) -> int:
        """Bytes of rows allocated."""
        cite("MEM-1")
        return self.rows.nbytes

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""
        return Lengths(self.offset, self.offset, self.offset, len(self.rows))

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last append's queries, column j at position j."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        return masks.in_position_order(logical, self.config.batch, self.queries, self.offset)

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind to this target would be accepted."""
        cite("CACHE-9")
        return 0 <= to <= self.offset

    def rewind(self, to: int) -> None:
        """Make `to` the offset; nothing moves, and the rows beyond are dead."""
        if not 0 <= to <= self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        cite("GROW-5", "CACHE-8", "GROW-18")
        if to == 0 and self.written:
            cite("GROW-15")
        if isinstance(self.rows, Residual) and to < self.offset:
            cite("ROW-27")
        self.offset = to
        self.queries = None

    def snapshot(self, start: int) -> Snapshot | None:
        """The rows [start, offset), start clipped at 0; none when that is empty."""
        cite("SNAP-5")
        first = max(0, start)
        if first >= self.offset:
            cite("SNAP-2")
            return None
        cite("SNAP-1", "SNAP-28")
        return Snapshot(self.kind, self.config, self.rows.copy(first, self.offset), first, self.offset)

    def can_restore(self, saved: Snapshot | None, to: int) -> bool:
        """Whether a restore of it to this target would be accepted."""
        cite("ASK-2", "ASK-4")
        if saved is None:
            return 0 <= to <= self.offset
        return snapshot.accepted(self._demand_saved, saved, to)

    def _demand_saved(self, saved: Snapshot, to: int) -> None:
        """Refuse what cannot be put back, and a target that cannot be reached with it."""
        snapshot.check("restore", saved, self.kind, self.config)
        if not 0 <= to <= saved.stop:
            raise refusals.restore_range("SNAP-8", to, saved.stop)
        if self.offset < saved.start:
            raise refusals.restore_gap("SNAP-9", self.offset, saved.start)

    def restore(self, saved: Snapshot | None, to: int) -> None:
        """Write the saved rows to their former slots, then cut at the target."""
        if saved is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self._demand_saved(saved, to)
        cite("SNAP-7" if to < saved.start else "SNAP-6", "SNAP-3", "SNAP-4", "SNAP-16")
        self.offset = saved.start
        self._feed(saved.rows)
        self.offset = to
        self.queries = None

    def needed(self, offset: int) -> list[int]:
        """The positions of all rows."""
        return list(range(offset))

    def kept_rows(self) -> Pair:
        """All rows, as they are kept."""
        return self.rows.chosen(self.in_order())

    def take_over(self, rows: Pair, offset: int) -> None:
        """Hold these rows alone."""
        self._clear()
        if offset:
            self._feed(rows)

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        """[a, b) and [b, c) give [a, c)."""
        pieces = snapshot.pieces("merge", (parent, child), self.kind, self.config)
        if len(pieces) < 2:
            return snapshot.only(pieces)
        first, second = pieces
        if first.stop != second.start:
            raise refusals.not_meeting("SNAP-18", (first.start, first.stop), (second.start, second.stop))
        cite("SNAP-17")
        return snapshot.joined(first, second)

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """[a, c) gives [a, at) and [at, c)."""
        if saved is None:
            cite("SNAP-25")
            return None, None
        snapshot.check("split", saved, self.kind, self.config)
        if saved.start < at < saved.stop:
            cite("SNAP-22", "SNAP-28")
            return snapshot.cut(saved, at)
        cite("SNAP-23")
        whole = saved.handed_on()
        return (None, whole) if at <= saved.start else (whole, None)
