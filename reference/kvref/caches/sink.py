"""A window beside sinks: the cache keeps the first rows for ever, and the newest of the others.

Slots 0 to S-1 hold the sinks. One row at a time goes behind the others until the slots are full, then to the slot
of the oldest row that is no sink (`_decode`). Several at once are appended behind the sinks and the newest others,
in position order. So all rows that a new query sees are held (`_prefill`). A caller may choose which rows are kept
(`keep`): the first of those are then the sinks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvref.abilities import masks, snapshot
from kvref.abilities.parcels import PackingOne
from kvref.abilities.snapshot import Snapshot
from kvref.cite import cite
from kvref.memory.chosen import ALL, Chosen
from kvref.memory.rows import Rows, count
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Logical, Window
from kvspec.parcels import Parcel
from kvspec.refusals import common as refusals
from kvspec.refusals import parcels as refusals_parcels
from kvspec.refusals import sink as refusals_sink


class Sink(snapshot.SavedWhole, PackingOne):
    """`live` is how many slots hold rows, from slot 0 on. `index` is the slot after the newest row. `chosen` says
    which rows it goes on with. While no row was dropped, slot s holds position s."""

    kind = "sink"

    def __init__(self, config: Config) -> None:
        if not refusals.valid(config) or {config.beside, config.shifted} - {None, 1}:
            raise refusals_sink.config("CACHE-3", config)
        if config.window is None or config.sinks is None:
            raise refusals_sink.config("CACHE-3", config)
        self.recent = config.window if config.beside else config.window - config.sinks
        if self.recent < 1:
            raise refusals_sink.no_room("SINK-17", config.window, config.sinks)
        self.config, self.sinks = config, config.sinks
        self.most = self.sinks + self.recent
        self._clear()

    def free(self) -> None:
        """Return to never written."""
        cite("CACHE-6")
        self._clear()

    def _clear(self) -> None:
        self.rows = Rows(self.config)
        self.offset = 0
        self.chosen = ALL
        self.live = 0
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
        if not refusals.fits(self.config, new):
            raise refusals.rows("CACHE-2", self.config, *new)
        self._cite_seen(n)
        if n == 1:
            self._decode(new)
        else:
            self._prefill(new)
        self.offset += n
        self.written = True
        self.queries = n

    def _cite_seen(self, n: int) -> None:
        """Cite the clauses that an append of n rows exercises."""
        cite("SINK-5", "SINK-30")
        if self.chosen.at:
            cite("SINK-37", "SINK-38")
        if self.count + n <= self.most:
            cite("SINK-3")
        elif n == 1:
            cite("SINK-2" if self.config.beside else "SINK-1")

    @property
    def count(self) -> int:
        """How many rows there were, but for those that were not chosen."""
        return self.chosen.count(self.offset)

    def _decode(self, new: Pair) -> None:
        """One row: behind the others while there is room, then in the slot of the oldest that is no sink."""
        if self.live > self.most:
            cite("SINK-28")
            self._keep(self.recent)
        if self.index == self.most:
            self.index = self.sinks
        cite("SINK-26")
        if self.index == len(self.rows):
            self.rows.join(new)
        else:
            self.rows.write(self.index, new)
        self.index += 1
        self.live = max(self.live, self.index)

    def _prefill(self, new: Pair) -> None:
        """Several rows: in position order, behind the sinks and the other rows that the first new query sees."""
        cite("SINK-4", "SINK-27")
        self._keep(self.recent - 1)
        self.rows.join(new)
        self.live = self.index = len(self.rows)

    def _keep(self, n: int) -> None:
        """Keep the sinks and the newest n others, in position order."""
        self.rows = self.rows.taken(self._newest(n))
        self.live = self.index = len(self.rows)

    def _in_order(self) -> list[int]:
        """The slots of all rows held, oldest first: the sinks, then the others from the index on."""
        others = self.live - self.sinks
        turned = [self.sinks + (self.index - self.sinks + i) % others for i in range(others)]
        return [*range(min(self.sinks, self.live)), *turned]

    def _newest(self, n: int) -> list[int]:
        """The slots of the sinks and of the newest n others, oldest first."""
        return self._newest_of(self._in_order(), n)

    def _newest_of(self, each: list[int], n: int) -> list[int]:
        """Of one number for each row, oldest first, those of the sinks and of the newest n others."""
        return each[: self.sinks] + each[max(self.sinks, len(each) - n) :]

    def read(self, what: Readable) -> Pair | None:
        """The history and the state are all rows held, in slot order."""
        if what == "view":
            return self._view()
        if what == "state" and not self.written:
            cite("SINK-29")
            return None
        return self.rows.read(0, self.live)

    def _view(self) -> Pair | None:
        """The rows that a next query would see beside its own, oldest first."""
        cite("SINK-7", *["SINK-37"] * bool(self.chosen.at))
        slots = self._newest(self.recent - 1)
        return self.rows.gather(slots) if slots else None

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""
        return Lengths(self.offset, self.live, self.live, len(self.rows))

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last append's queries: it also hides what the cache itself hides."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        masks.demand(logical, self.config.batch, self.queries, self.live)
        windows = [part.size for part in logical if isinstance(part, Window)]
        others = tuple(part for part in logical if not isinstance(part, Window))
        mask = masks.in_position_order(others, self.config.batch, self.queries, self.live)
        seen = self._seen(windows)
        if seen is not None:
            mask = seen if mask is None else masks.intersected(mask, seen)
        return mask if self.queries != 1 or mask is None else self._gathered(mask)

    def _seen(self, windows: list[int]) -> Array | None:
        """`[1, 1, L, K]` is what each query sees of the sinks, the newest rows and these windows. It is None if it
        sees all."""
        if not self.queries or (self.queries == 1 and not windows):
            return None
        column = np.arange(self.live)[None, :]
        query = column[:, -self.queries :].T
        cite("SINK-21")
        seen = (column < self.sinks) | (query - column < self.recent)
        position = np.array(self._places())
        for size in windows:
            cite("SINK-22")
            seen = seen & (position[query] - position[column] < size)
        return np.asarray(seen)[None, None]

    def _gathered(self, mask: Array) -> Array:
        """Position order to slot order; a single column stands for all."""
        cite("SINK-23")
        return mask if mask.shape[3] == 1 else mask[..., np.argsort(self._in_order())]

    def _places(self) -> list[int]:
        """The positions of all rows of the history, oldest first: their indices in it if positions are shifted."""
        if self.config.shifted:
            cite("SINK-19", *["SINK-39"] * bool(self.chosen.at))
            return list(range(self.live))
        cite("SINK-18", *["SINK-39"] * bool(self.chosen.at))
        return self._appended_at()

    def _appended_at(self) -> list[int]:
        """The positions at which all rows held were appended, oldest first."""
        sinks, count = min(self.sinks, self.live), self.count
        return [self.chosen.position(i) for i in (*range(sinks), *range(count - self.live + sinks, count))]

    def positions(self) -> list[int]:
        """The positions of the rows that the last append's newest query sees, oldest first."""
        if self.queries is None:
            raise refusals_sink.no_history("SINK-20")
        if self.queries == 0:
            cite("SINK-20")
            return []
        return self._newest_of(self._places(), self.recent)

    def keep(self, positions: Sequence[int]) -> None:
        """Go on with the rows of these positions alone, in the order of positions."""
        seen = dict(zip(self.positions_seen(), self._newest(self.recent), strict=True))
        self._demand_seen(positions, seen)
        cite("SINK-38", "SINK-43", "SINK-44", *["SINK-40"] * (list(positions) != sorted(positions)))
        if len(positions) < self.count:
            self.chosen = Chosen(tuple(sorted(positions)), self.offset)
        self.rows = self.rows.taken([seen[p] for p in sorted(positions)])
        self.live = self.index = len(self.rows)
        self.queries = None

    def positions_seen(self) -> list[int]:
        """The positions at which the rows were appended that the newest query sees, oldest first."""
        return self._newest_of(self._appended_at(), self.recent)

    def _demand_seen(self, positions: Sequence[int], seen: dict[int, int]) -> None:
        """Refuse to keep no row, one that the newest query does not see, and one that is named twice."""
        if not positions:
            raise refusals_sink.keep_none("SINK-41")
        if unseen := [p for p in positions if p not in seen]:
            raise refusals_sink.keep_unseen("SINK-41", unseen[0], self.offset)
        if len(set(positions)) < len(positions):
            raise refusals_sink.keep_twice("SINK-41")

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind to this target would be accepted."""
        cite("CACHE-9")
        return self._reaches(to)

    def _reaches(self, to: int) -> bool:
        """Whether it has all rows that it had at a target."""
        return 0 <= to <= self.offset and (to == self.offset or (self.has_all and to >= self.chosen.at))

    @property
    def has_all(self) -> bool:
        """Whether it has every row there was of those chosen: none was dropped since, or left behind when it was
        unpacked."""
        return bool(self.live == self.count <= self.most)

    def rewind(self, to: int) -> None:
        """Make `to` the offset. Refused if a row was dropped."""
        if not 0 <= to <= self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        if to < self.offset and self.count > self.most:
            raise refusals_sink.rewind_dropped("SINK-12", to, self.offset, self.most)
        if to < self.chosen.at:
            raise refusals_sink.rewind_chosen("SINK-42", to, self.chosen.at)
        if to < self.offset and not self.has_all:
            raise refusals_parcels.left_behind("MOVE-11", to, self.offset)
        self.queries = None
        if to == self.offset:
            cite("SINK-8")
            return
        cite("SINK-9", "SINK-10", "SINK-29", *["SINK-42"] * bool(self.chosen.at))
        self._cut(to)

    def _cut(self, to: int) -> None:
        """Drop the rows from a position on, of a cache that has all."""
        self.offset = to
        self.live = self.index = self.count

    def snapshot(self, start: int) -> Snapshot | None:
        """All rows held, in slot order, with the index; none when nothing lies at or after `start`."""
        cite("SNAP-5")
        if max(0, start) >= self.offset:
            cite("SNAP-2")
            return None
        cite("SNAP-34", "SNAP-28")
        cite(*["SNAP-35"] * bool(self.chosen.at))
        rows = self.rows.copy(0, self.live)
        return Snapshot(self.kind, self.config, rows, 0, self.offset, self.index, self.chosen)

    def can_restore(self, saved: Snapshot | None, to: int) -> bool:
        """Whether a restore of it to this target would be accepted."""
        cite("ASK-2", "ASK-4")
        if saved is None:
            return self._reaches(to)
        return snapshot.accepted(self._demand_saved, saved, to)

    def _demand_saved(self, saved: Snapshot, to: int) -> None:
        """Refuse what cannot be put back, and a target that cannot be reached with it."""
        snapshot.check("restore", saved, self.kind, self.config)
        if not 0 <= to <= saved.stop:
            raise refusals.restore_range("SNAP-8", to, saved.stop)
        had = saved.chosen.count(saved.stop)
        if to < saved.stop and had > self.most:
            raise refusals_sink.restore_dropped("SNAP-33", to, saved.stop, self.most)
        if to < saved.chosen.at:
            raise refusals_sink.restore_chosen("SNAP-35", to, saved.chosen.at)
        if to < saved.stop and count(saved.rows) < had:
            raise refusals_parcels.left_behind("MOVE-11", to, saved.stop)

    def restore(self, saved: Snapshot | None, to: int) -> None:
        """Become the saved cache. `to` may be less than its end only if it had dropped no row."""
        if saved is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self._demand_saved(saved, to)
        cite("SNAP-3", "SNAP-4", "SNAP-32", "SNAP-34")
        self.rows = Rows(self.config)
        self.rows.join(saved.rows)
        self.offset, self.index, self.live = saved.stop, saved.index, len(self.rows)
        self.chosen = saved.chosen
        self.written, self.queries = True, None
        if to < saved.stop:
            self._cut(to)

    def pack(self) -> Parcel:
        """What a next query sees beside its own row, with its descriptor."""
        positions = self._newest_of(self._appended_at(), self.recent - 1)
        return self.parcel(positions, self.offset, self.kept_rows())

    def needed(self, offset: int) -> list[int]:
        """The positions of the sinks, and of the newest others that a next query sees beside its own row."""
        newest = range(max(self.sinks, offset - self.recent + 1), offset)
        return [*range(min(self.sinks, offset)), *newest]

    def kept_rows(self) -> Pair:
        """Those rows, oldest first, as they are kept."""
        return self.rows.chosen(self._newest(self.recent - 1))

    def take_over(self, rows: Pair, offset: int) -> None:
        """Hold these rows alone, oldest first."""
        self._clear()
        if offset:
            self.rows.join(rows)
            self.live = self.index = len(self.rows)
            self.offset, self.written = offset, True
