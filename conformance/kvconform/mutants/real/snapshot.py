"""Bugs of snapshots: what they hold, where they may go, how they are cut and joined; planted in the reference."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import planted
from kvconform.mutants.real.ring import zeros_behind
from kvref import snapshot
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.snapshot import Snapshot
from kvspec.contract import Pair


@planted("RING-04", breaks="SNAP-12 SNAP-15", anomaly="padding-seen")
class AsWideAsTheOffset(Ring):
    """The rows of a wrapped ring are saved in an array that is as long as the offset."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        if made is not None:
            made._rows = Pair(*(zeros_behind(a, self.offset - self.buffered) for a in made.rows))
        return made


@planted("MERGE-01", breaks="SNAP-13", anomaly="missing-refusal")
class ForksWhatIsGone(Ring):
    """A snapshot of a wrapped ring can be restored to any position."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None or saved.gone or not 0 <= to < saved.stop or saved.stop <= self.window:
            super().restore(saved, to)
            return
        super().restore(saved, saved.stop)
        self.index = (self.index - (saved.stop - to)) % self.buffered
        self.offset = to


@planted("MERGE-04", breaks="SNAP-17 SNAP-30", anomaly="keys-without-values")
class KeysJoinedTwice(Growing):
    """The values of a merged snapshot are its keys."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and parent is not None and child is not None:
            keys, values = made.rows
            made._rows = Pair(keys, np.resize(keys, values.shape))
        return made


@planted("MERGE-06", breaks="SNAP-20", anomaly="padding-seen")
class PlaceholderOfTheOther(Growing):
    """A merge with nothing adds rows of zeros, as many as the other snapshot has."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and (parent is None or child is None):
            made.stop += made.stop - made.start
            made._rows = Pair(*(zeros_behind(a, a.shape[2]) for a in made.rows))
        return made


@planted("REUSE-08", breaks="SNAP-9", anomaly="lost-rows")
class BehindWhateverIsThere(Growing):
    """A restore appends the saved rows to the present ones, even where those end before the saved ones
    begin."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None or saved.gone or not self.offset < saved.start <= to <= saved.stop:
            super().restore(saved, to)
            return
        snapshot.check("restore", saved, self.kind, self.config)
        self._feed(saved.rows)
        self.offset, self.queries = self.offset - (saved.stop - to), None
