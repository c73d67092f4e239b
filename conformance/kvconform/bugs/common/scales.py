"""Common bugs of scales in caches that have many sequences: an operation moves codes, and leaves the scales where
they are, or takes those of another place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvconform.bugs.planting import planted
from kvconform.bugs.real.forms import codes, leave
from kvref.caches.bucket import Bucket
from kvref.caches.copy import Buffer
from kvref.caches.ragged import Ragged
from kvref.caches.store import Store
from kvref.memory.compiled_graph import Handles
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair


@planted("wrong-scale", breaks="ROW-6")
class ScaleOfTheSlot(Pool):
    """A row that takes the place of another in a page gets the scale that lies there."""

    def write(self, table: Sequence[int], begin: int, rows: Pair) -> None:
        written: dict[int, int] = self.__dict__.setdefault("written", {})
        for page, slots, positions in self.runs(table, begin, begin + rows.keys.shape[1]):
            again = slice(slots.start, max(slots.start, min(slots.stop, written.get(page, 0))))
            places = self.keys[page][:, again], self.values[page][:, again]
            before = [a.copy() for a in places]
            part = slice(positions.start - begin, positions.stop - begin)
            super().write([page], slots.start, Pair(rows.keys[:, part], rows.values[:, part]))
            leave(self.kept, places, before)
            written[page] = max(written.get(page, 0), slots.stop)


@planted("wrong-scale", breaks="ROW-6")
class ScalesOfEntries(Pool):
    """Scales are looked up by the number of an entry, and not by the page that it names."""

    def seen(self, table: Sequence[int], n: int) -> Pair:
        if self.kept.forms is None:
            return super().seen(table, n)
        rows = self.kept_rows(table, n)
        leave(self.kept, rows, self.kept_rows(range(self.entries(n)), n))
        return self.kept.decoded(rows)


@planted("wrong-scale", breaks="ROW-7 ROW-5")
class ScaleOfThePage(Pool):
    """All rows of a page are read with the scale of its first row."""

    def kept_rows(self, table: Sequence[int], n: int) -> Pair:
        rows = super().kept_rows(table, n)
        first = np.arange(n) // self.size * self.size
        leave(self.kept, rows, [a[:, first] for a in rows])
        return rows


@planted("wrong-scale", breaks="ROW-6")
class ScaleOfTheLastRequest(Store):
    """A row that is written where a rolled back one lay gets the scale of that one."""

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        written: dict[int, int] = self.__dict__.setdefault("written", {})
        end = at + rows.keys.shape[1]
        places = [a[layer][:, at : max(at, min(end, written.get(layer, 0)))] for a in (self.keys, self.values)]
        before = [a.copy() for a in places]
        super()._write(layer, at, rows)
        leave(self.kept, places, before)
        written[layer] = max(written.get(layer, 0), end)


@planted("wrong-scale", breaks="ROW-6")
class ScatteredWithoutScales(Store):
    """A scatter copies codes to a sequence's place, and leaves the scales that lie there."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        batch = self._batch("scatter")
        places = [[a[sequence] for a in arrays] for arrays in (batch.keys, batch.values) if self._there(sequence)]
        before = [[a.copy() for a in arrays] for arrays in places]
        super().scatter(sequence, n, layer)
        for to, was in zip(zip(*places, strict=True), zip(*before, strict=True), strict=True):
            leave(self.kept, to, was)

    def _there(self, sequence: int) -> bool:
        return sequence in range(len(self._batch("scatter").lengths))


@planted("wrong-scale", breaks="ROW-7")
class ScaleOfTheFirstSequence(Store):
    """The rows of a step have the scales of the first sequence's row."""

    def _encoded(self, rows: Pair) -> Pair:
        made = super()._encoded(rows)
        for array, end in zip(made, codes(self.kept), strict=True):
            array[..., end:] = array[:, :1, :, end:]
        return made


@planted("wrong-scale", breaks="ROW-18")
class LoadedWithoutScales(Store):
    """A load brings codes back, and no scales."""

    def _rounded(self, saved: Sequence[Pair]) -> list[Pair]:
        made = super()._rounded(saved)
        for pair in made if self.kept.forms is not None else ():
            for array, end in zip(pair, codes(self.kept), strict=True):
                array[..., end:] = 0
        return made


@planted("wrong-scale", breaks="ROW-6")
class RepeatedWithoutScales(Ragged):
    """A sequence that is repeated has its scales, and its copies have those of the last sequence."""

    def repeat(self, times: int) -> None:
        super().repeat(times)
        for s in range(len(self.lengths)):
            if s % times:
                both = zip(self._rows(s), self._rows(len(self.lengths) - 1), strict=True)
                pairs = [(now[:, : was.shape[1]], was[:, : now.shape[1]]) for now, was in both]
                leave(self.kept, *zip(*pairs, strict=True))


@planted("wrong-scale", breaks="ROW-6")
class ScaleOfTheSlotBefore(Buffer):
    """A slot that was written before keeps its scales when another row is copied into it."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        written: set[int] = self.__dict__.setdefault("written", set())
        places = [a[slot] for a in self.slots]
        before = [a.copy() for a in places]
        super()._write(slot, rows, i)
        if slot in written:
            leave(self.kept, places, before)
        written.add(slot)


@planted("wrong-scale", breaks="ROW-7")
class ScaleOfTheFirstRow(Buffer):
    """All rows of a copy have the scales of the first."""

    def _encoded(self, rows: Pair) -> Pair:
        made = super()._encoded(rows)
        for array, end in zip(made, codes(self.kept), strict=True):
            array[..., end:] = array[:1, ..., end:]
        return made


@planted("wrong-scale", breaks="ROW-6")
class BoundWithoutScales(Bucket):
    """Handles of another bound get the codes of the past rows, and the scales of the first of them."""

    def _install(self, rows: list[tuple[int, Pair]], bound: int, room: int) -> Handles:
        made = super()._install(rows, bound, room)
        leave(self.kept, (made.keys, made.values), [a[..., :1, :] for a in (made.keys, made.values)])
        return made


@planted("wrong-scale", breaks="ROW-6")
class NewestWithoutItsScale(Bucket):
    """The newest row is moved to its slot, and its scales stay behind the padding."""

    def _compact(self, handles: Handles) -> None:
        slot, moves = self.past_ - self.pending, self.pending
        before = [a[..., slot : slot + 1, :].copy() for a in (handles.keys, handles.values)]
        super()._compact(handles)
        if moves and slot != handles.bound:
            leave(self.kept, [a[..., slot : slot + 1, :] for a in (handles.keys, handles.values)], before)
