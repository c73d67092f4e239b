"""Rings that hide by a mask what their window has left. One keeps the whole history."""

from __future__ import annotations

from typing import Any, ClassVar

from kvref.abilities import snapshot
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvspec.contract import Lengths, Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.masks import Logical, Window
from kvspec.refusals import common
from kvworkshop.fakes import Fake


class MaskedRing(Growing):
    """A ring that may hold rows older than its window, and hides them from every query."""

    kind = "ring"

    def __init__(self, config: Config) -> None:
        if not common.valid(config) or config.window is None:
            raise Refused("CACHE-3", "no such ring")
        self.window = config.window
        super().__init__(config)

    def demand_rows(self, new: Pair) -> None:
        """Refuse under the ring's own clause."""
        if not common.fits(self.config, new):
            raise Refused("CACHE-2", "rows of another geometry")

    def mask(self, logical: Logical) -> Array | None:
        """The window is part of every mask."""
        return super().mask((*logical, Window(self.window)))

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        """The newer of two."""
        pieces = snapshot.pieces("merge", (parent, child), self.kind, self.config)
        for other in pieces[:-1]:
            other.consume()
        return pieces[-1].handed_on() if pieces else None

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """Nothing, and all."""
        return super().split(saved, 0)


class WholeRing(MaskedRing):
    """A ring that keeps the whole history, masks the window, and can therefore rewind to anywhere."""

    def read(self, what: Readable) -> Pair | None:
        """All rows; of the view the newest W-1."""
        pair, first = super().read(what), max(0, self.offset - self.window + 1)
        return pair if what != "view" or pair is None else Pair(*(a[:, :, first:] for a in pair))

    def rewind(self, to: int) -> None:
        """To anywhere."""
        if not 0 <= to <= self.offset:
            raise Refused("CACHE-7", "beyond the ends")
        super().rewind(to)

    def lengths(self) -> Lengths:
        """The offset alone: how much is kept is its own affair."""
        return Lengths(self.offset)

    def snapshot(self, start: int) -> Snapshot | None:
        """All rows, or none."""
        return super().snapshot(start if start >= self.offset else 0)


class Whole(Fake):
    """A ring that keeps the whole history and masks the window, at level visible. It can rewind to anywhere."""

    ring: ClassVar[Any] = WholeRing
    chapters: ClassVar[dict[str, Any]] = {
        "ring": {"level": "visible", "rewind": -1},
        "mask": "visible",
        "snapshot": "visible",
    }
