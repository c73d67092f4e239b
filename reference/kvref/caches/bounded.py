"""The bounded cache: a growing cache that holds at most `max_len` rows and refuses appends beyond."""

from __future__ import annotations

from kvref.abilities import masks
from kvref.abilities.parcels import PackingOne
from kvref.cite import cite
from kvref.memory.rows import Rows, count
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical
from kvspec.refusals import common as refusals
from kvspec.refusals import parcels as refusals_parcels


class Bounded(PackingOne):
    """Position p lies in slot p; `rows` holds the offset's live rows and the spare capacity behind them."""

    kind = "bounded"

    def __init__(self, config: Config) -> None:
        if not refusals.valid(config) or config.max_len is None:
            raise refusals.config("CACHE-3", self.kind, config)
        self.config, self.max_len = config, config.max_len
        self.appended = 0
        self._clear()

    def free(self) -> None:
        """Return to never written."""
        cite("CACHE-6")
        self._clear()

    def _clear(self) -> None:
        self.rows = Rows(self.config)
        self.offset = 0
        self.written = False
        self.queries: int | None = None

    def can_append(self, n: int) -> bool:
        """Whether an append of n rows would be accepted."""
        cite("ASK-1", "ASK-4")
        return bool(self.offset + n <= self.max_len)

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows at positions offset..offset+n-1, all of them or none."""
        new = Pair(keys, values)
        n = count(new)
        if n == 0:
            cite("CACHE-1")
            self.queries = 0
            return
        self._demand(new)
        self._reach(self.offset + n)
        cite("BOUNDED-1", "BOUNDED-15", "BOUNDED-16")
        self.rows.write(self.offset, new)
        self.offset += n
        self.written = True
        self.queries = n
        self._cite_room(n)

    def _demand(self, new: Pair) -> None:
        """Refuse rows of another geometry, then more rows than there is room for."""
        if not refusals.fits(self.config, new):
            raise refusals.rows("CACHE-2", self.config, *new)
        if self.offset + count(new) > self.max_len:
            raise refusals.no_room("BOUNDED-2", count(new), self.offset, self.max_len)

    def _reach(self, rows: int) -> None:
        """Grow by whole steps until this many rows fit, and not past the bound."""
        cite("BOUNDED-17")
        step = self.config.step
        slots = min(-(-rows // step) * step, self.max_len)
        if slots > len(self.rows):
            self.rows.grow(slots, self.offset)

    def _cite_room(self, n: int) -> None:
        """Cite the clauses that a full cache shows, and those of a cache that took more rows in its life than it
        can hold."""
        self.appended += n
        if self.offset == self.max_len:
            cite("BOUNDED-3")
        if self.appended > self.max_len:
            cite("BOUNDED-5")

    def read(self, what: Readable) -> Pair | None:
        """The history is all live rows, as are the view and the state."""
        if what == "view":
            cite("BOUNDED-10")
        if what != "history" and not self.written:
            cite("BOUNDED-16")
            return None
        return self.rows.read(0, self.offset)

    def needed(self, offset: int) -> list[int]:
        """The positions of all rows."""
        return list(range(offset))

    def kept_rows(self) -> Pair:
        """All rows, as they are kept."""
        return self.rows.chosen(self.needed(self.offset))

    def demand_room(self, offset: int) -> None:
        """Refuse more rows than it can hold."""
        if offset > self.max_len:
            raise refusals_parcels.no_room("MOVE-10", offset, self.max_len)

    def take_over(self, rows: Pair, offset: int) -> None:
        """Hold these rows alone."""
        self._clear()
        if offset:
            self._reach(offset)
            self.rows.write(0, rows)
            self.offset, self.written = offset, True

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
        cite("BOUNDED-6", "BOUNDED-17")
        if to == 0 and self.written:
            cite("BOUNDED-16")
        self.offset = to
        self.queries = None
