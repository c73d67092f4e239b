"""Bugs of speculation, planted in the reference's rounds."""

from __future__ import annotations

from typing import Any

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing


@planted("SNAP-12", breaks="DRAFT-12", anomaly="missing-refusal")
class SavesInBetween(Growing):
    """A snapshot can be taken while a round is open."""

    def snapshot(self, start: int) -> Any:
        return Growing.snapshot.__wrapped__(self, start)  # type: ignore[attr-defined]
