"""Correct caches whose histories, after an append of no rows, have another width than the reference's."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.abilities import masks
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import Pair, Readable
from kvspec.geometry import Array
from kvspec.masks import Explicit, Logical


class HandsOutNone(Growing):
    """Hands out no rows where there are no queries; its masks are as wide as its offset all the same."""

    def read(self, what: Readable) -> Pair | None:
        rows = super().read(what)
        return rows and Pair(*(a[:, :, :0] for a in rows)) if what == "history" and self.queries == 0 else rows


class CutsToItsWindow(Ring):
    """Hands out its newest W rows where there are no queries, and makes masks of that width."""

    def read(self, what: Readable) -> Pair | None:
        rows = super().read(what)
        return rows and Pair(*(a[:, :, -self.window :] for a in rows)) if self._cuts(what) else rows

    def mask(self, logical: Logical) -> Array | None:
        if not self._cuts("history"):
            return super().mask(logical)
        return masks.in_position_order(logical, self.config.batch, 0, min(self.buffered, self.window))

    def _cuts(self, what: str) -> bool:
        return what == "history" and self.queries == 0


class TakesOneMore(CutsToItsWindow):
    """The same, which takes a mask that is one column too wide."""

    def mask(self, logical: Logical) -> Array | None:
        if not self._cuts("history"):
            return super().mask(logical)
        wide = min(self.buffered, self.window) + 1
        return (
            None
            if any(isinstance(p, Explicit) and p.array.shape[3] == wide for p in logical)
            else super().mask(logical)
        )


class Widths(Reference):
    caches: ClassVar[dict[str, Any]] = {"growing": HandsOutNone, "ring": CutsToItsWindow}

    def describe(self) -> dict[str, Any]:
        chapters = dict.fromkeys(("growing", "ring", "mask"), "visible")
        return {"name": "widths", "refusals": "cited", "chapters": chapters}


class OneColumnTooWide(Widths):
    caches: ClassVar[dict[str, Any]] = {"growing": HandsOutNone, "ring": TakesOneMore}
