"""Sinks and a window on a device: in one buffer the first slots keep the sinks, and a ring of slots follows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvgpu.caches import mask, snapshot
from kvgpu.caches.chosen import ALL, Chosen, together
from kvgpu.caches.parcels import Packing, Run
from kvgpu.caches.snapshot import Snapshot
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import Slots, acceptable, rows_in
from kvgpu.memory.layout import Place, Span
from kvspec.contract import Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.masks import Explicit, Logical, Window
from kvspec.refusals import common as refusals
from kvspec.refusals import parcels as refusals_parcels
from kvspec.refusals import sink as refusals_sink


class Sink(snapshot.SavedWhole, Packing):
    """Rows are in the first `filled` slots of the buffer, the sinks in front; `index` is the slot after the newest.

    `chosen` says which rows it has had. The buffer has room for all that a query sees and for the longest chunk so
    far, and is replaced only by a longer one.
    """

    kind = "sink"

    def __init__(self, config: Config, space: Workspace) -> None:
        flags = {config.beside, config.shifted}
        if config.window is None or config.sinks is None or not acceptable(config) or not flags <= {None, 1}:
            raise refusals_sink.config("CACHE-3", config)
        self.config, self.space = config, space
        self.sinks: int = config.sinks
        self.most: int = config.window + (config.sinks if config.beside else 0)
        if self.most <= self.sinks:
            raise refusals_sink.no_room("SINK-17", config.window, config.sinks)
        self.store = Slots(space, config)
        self._forget()

    def _forget(self) -> None:
        self.offset = self.filled = self.index = 0
        self.chosen = ALL
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
            self._write(self.store.staged("CACHE-2", keys, values))
        self.queries = n

    def _write(self, source: Place) -> None:
        if source.slots == 1:
            self._decode(source)
        else:
            self._prefill(source)
        self.offset += source.slots
        self.written = True

    def _decode(self, source: Place) -> None:
        """Write one row: behind the others, or in the slot of the oldest that is no sink. Drop first the rows of a
        long chunk that no query needs."""
        surplus = self.filled > self.most
        slot = self.sinks if surplus or self.index == self.most else self.index
        rows = self._room(self._beside() if surplus else 0, slot + 1, self.most)
        self.store.put(1, source, rows, slot)
        self.store.adopt(rows)
        self.filled = self.most if surplus else max(self.filled, slot + 1)
        self.index = slot + 1

    def _prefill(self, source: Place) -> None:
        """Write several rows behind the sinks and the other rows that their first query sees, in position order."""
        n, sinks, others = source.slots, min(self.filled, self.sinks), self._beside()
        end = sinks + others + n
        rows = self._room(others, sinks, end)
        self.store.put(n, source, rows, sinks + others)
        self.store.adopt(rows)
        self.filled = self.index = end

    def _beside(self) -> int:
        """Count the rows, other than sinks and its own, that a next query sees."""
        return min(max(0, self.filled - self.sinks), self.most - self.sinks - 1)

    def _room(self, others: int, at: int, slots: int) -> Rows:
        """Give a buffer of at least `slots` slots: the sinks in front, the newest `others` from slot `at` on."""
        old = self.store.rows
        if old is not None and slots <= old.slots:
            self._pull(others, old.place.span(at))
            return old
        rows = self.store.allocated(max(self.most, slots))
        if old is not None:
            self.store.move(min(self.filled, self.sinks), old.place.span(), rows.place.span())
            if others:
                self.store.move(others, self._newest(others), rows.place.span(at))
        return rows

    def _pull(self, others: int, target: Span) -> None:
        """Move the newest rows that are no sinks; by way of scratch space, because places overlap."""
        if others == 0:
            return
        newest = self._newest(others)
        if newest.turn == 0:
            return  # only before a chunk: they are already where it needs them
        aside = self.space.other(self.store.geometry, others).span()
        self.store.move(others, newest, aside)
        self.store.move(others, aside, target)

    def _newest(self, others: int) -> Span:
        """Where the newest rows that are no sinks lie, the oldest of them first; there must be some."""
        assert self.store.rows is not None and 0 < others <= self.filled - self.sinks
        ring = self.filled - self.sinks
        return self.store.rows.place.span(self.sinks, (self.index - self.sinks - others) % ring, ring)

    def read(self, what: Readable) -> Pair | None:
        """History and state are all held rows as they lie; the view is the rows that a next query sees."""
        if what == "view":
            return self._view()
        there = self.queries is not None if what == "history" else self.written
        return self.store.read(self.filled) if there else None

    def _view(self) -> Pair | None:
        """The sinks and the newest others, oldest first, in two parts."""
        sinks, others = min(self.filled, self.sinks), self._beside()
        if sinks == 0:
            return None
        first = self.store.read(sinks)
        if others == 0:
            return first
        newest = self._newest(others)
        rest = self.store.read(others, newest.first, newest.turn, newest.wrap)
        keys = np.concatenate((first.keys, rest.keys), axis=2)
        return Pair(keys, np.concatenate((first.values, rest.values), axis=2))

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""
        return Lengths(self.offset, self.filled, self.filled, self.store.slots)

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last append's queries: made in position order, its columns then brought to slots."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        history = mask.History(self.config.batch, self.queries, self.filled)
        mask.demand(logical, history)
        windows = [part.size for part in logical if isinstance(part, Window)]
        others = tuple(part for part in logical if not isinstance(part, Window))
        built = mask.built(self.space, (*others, *self._hidden(windows)), history)
        if built is None or built.shape[3] == 1:
            return built
        slots, ring = np.arange(self.filled), max(1, self.filled - self.sinks)
        return built[..., np.where(slots < self.sinks, slots, self.sinks + (slots - self.index) % ring)]

    def _hidden(self, windows: list[int]) -> Logical:
        """What these windows hide, and what the cache itself hides from several queries, as a part of a mask."""
        queries = self.queries or 0
        if queries == 0 or (queries == 1 and not windows):
            return ()
        column = np.arange(self.filled)
        age = np.arange(self.filled - queries, self.filled)[:, None] - column
        sink = column < self.sinks
        shown = sink | (age < self.most - self.sinks)
        if windows:
            stands = np.array(self._stands())
            shown &= stands[self.filled - queries :, None] - stands < min(windows)
        return (Explicit(shown[None, None]),)

    def _stands(self) -> Sequence[int]:
        """The positions of all held rows, oldest first: places among them where positions are shifted."""
        return range(self.filled) if self.config.shifted else self._appended()

    def _appended(self) -> list[int]:
        """The positions at which all held rows were appended, oldest first."""
        number, dropped = np.arange(self.filled), self.chosen.rows(self.offset) - self.filled
        found: list[int] = self.chosen.positions(number + dropped * (number >= self.sinks)).tolist()
        return found

    def _seen(self, each: Sequence[int], others: int) -> list[int]:
        """Of what there is for each held row, oldest first, that of the sinks and of the newest others."""
        return [*each[: self.sinks], *each[max(self.sinks, self.filled - others) :]]

    def keep(self, positions: Sequence[int]) -> None:
        """Drop all rows but those that were appended at these positions: one launch, and one back."""
        recent, slots = self.most - self.sinks, [self._slot(number) for number in range(self.filled)]
        lie = dict(zip(self._seen(self._appended(), recent), self._seen(slots, recent), strict=True))
        self._demand_there(positions, lie)
        if len(positions) != self.chosen.rows(self.offset):
            self.chosen = Chosen(tuple(sorted(positions)), self.offset)
        together(self.store, [lie[p] for p in sorted(positions)])
        self.filled = self.index = len(positions)
        self.queries = None

    def _slot(self, number: int) -> int:
        """The slot of a held row by its number, the oldest first."""
        if number < self.sinks:
            return number
        return self.sinks + (self.index + number - 2 * self.sinks) % (self.filled - self.sinks)

    def _demand_there(self, positions: Sequence[int], lie: dict[int, int]) -> None:
        """Refuse no position, one twice, and one whose row the newest query does not see."""
        if len(positions) == 0:
            raise refusals_sink.keep_none("SINK-41")
        for position in positions:
            if position not in lie:
                raise refusals_sink.keep_unseen("SINK-41", position, self.offset)
        if len({*positions}) != len(positions):
            raise refusals_sink.keep_twice("SINK-41")

    def positions(self) -> list[int]:
        """The positions of the rows that the last append's newest query sees, oldest first."""
        if self.queries is None:
            raise refusals_sink.no_history("SINK-20")
        if self.queries == 0:
            return []
        return self._seen(self._stands(), self.most - self.sinks)

    def can_rewind(self, to: int) -> bool:
        """Whether it can rewind: to where rows were chosen until it lacks a row, then only to its own offset."""
        whole = self.filled == self.chosen.rows(self.offset) <= self.most
        return self.chosen.since <= to <= self.offset and (whole or to == self.offset)

    def rewind(self, to: int) -> None:
        """Make `to` the offset; nothing on the device changes."""
        if to < 0 or to > self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        if to < self.offset and self.chosen.rows(self.offset) > self.most:
            raise refusals_sink.rewind_dropped("SINK-12", to, self.offset, self.most)
        if to < self.chosen.since:
            raise refusals_sink.rewind_chosen("SINK-42", to, self.chosen.since)
        if not self.can_rewind(to):
            raise refusals_parcels.left_behind("MOVE-11", to, self.offset)
        if to < self.offset:
            self.offset = to
            self.filled = self.index = self.chosen.rows(to)
        self.queries = None

    def snapshot(self, start: int) -> Snapshot | None:
        """A copy, on the device, of all held rows as they lie; none if no position from `start` on was written."""
        if self.store.rows is None or max(start, 0) >= self.offset:
            return None
        run = (self.filled, self.store.rows.place.span())
        rows = snapshot.copied(self.space.runtime, self.store.geometry, run)
        return Snapshot(self.kind, self.config, rows, 0, self.offset, self.index, self.chosen)

    def _demand_within(self, saved: Snapshot, to: int) -> None:
        """`to` may be less than its end only if it had dropped no row."""
        had = saved.chosen.rows(saved.stop)
        if to != saved.stop and had > self.most:
            raise refusals_sink.restore_dropped("SNAP-33", to, saved.stop, self.most)
        if to < saved.chosen.since:
            raise refusals_sink.restore_chosen("SNAP-35", to, saved.chosen.since)
        if to != saved.stop and saved.rows.slots < had:
            raise refusals_parcels.left_behind("MOVE-11", to, saved.stop)

    def _put_back(self, saved: Snapshot, to: int) -> None:
        """Become the saved cache."""
        held, rows = saved.rows.slots, self.store.rows
        if rows is None or rows.slots < held:
            rows = self.store.allocated(max(self.most, held))
        self.store.move(held, saved.rows.place.span(), rows.place.span())
        self.store.adopt(rows)
        self.offset, self.filled, self.index, self.written = saved.stop, held, saved.index, True
        self.chosen = saved.chosen
        self.rewind(to)

    def needed(self, offset: int) -> list[int]:
        """The positions of the sinks, and of the newest others that a next query sees beside its own row."""
        first = max(self.sinks, offset + 1 + self.sinks - self.most)
        return [*range(min(self.sinks, offset)), *range(first, offset)]

    def there(self) -> list[int]:
        """The positions of the rows that a next query sees beside its own."""
        return self._seen(self._appended(), self.most - self.sinks - 1)

    def runs(self) -> list[Run]:
        """Where those rows lie: the sinks, then the others."""
        rows, sinks, others = self.store.rows, min(self.filled, self.sinks), self._beside()
        if rows is None or sinks == 0:
            return []
        return [(sinks, rows.place.span()), *([(others, self._newest(others))] if others else [])]

    def take_over(self, rows: Place | None, offset: int) -> None:
        """Hold these rows alone, in a new buffer, oldest first."""
        self.free()
        if rows is not None:
            self._write(rows)
        self.offset = offset
