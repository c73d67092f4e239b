"""Bugs of snapshots, planted in the reference: what they hold, where they may go, how they are cut and joined."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.abilities.snapshot import Snapshot
from kvref.caches.ring import Ring


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
