"""Bugs of speculation, planted in the reference's rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvadapters.reference import Reference
from kvconform.mutants.planting import planted
from kvref.draft import Round
from kvref.growing import Growing
from kvref.ring import Ring


@planted("SPEC-07", breaks="DRAFT-16", anomaly="missing-refusal")
class NobodyAsks(Reference):
    """A cache that cannot drop drafts is treated as a layer without a cache."""

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        return Round([c if isinstance(c, Growing | Ring) else None for c in caches], isolated)


@planted("SNAP-12", breaks="DRAFT-12", anomaly="missing-refusal")
class SavesInBetween(Growing):
    """A snapshot can be taken while a round is open."""

    def snapshot(self, start: int) -> Any:
        return Growing.snapshot.__wrapped__(self, start)  # type: ignore[attr-defined]
