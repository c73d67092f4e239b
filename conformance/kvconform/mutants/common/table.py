"""Bugs as anybody could write them, each under the name of its anomaly: so that common ones are named though nobody
reported them. They are planted in the reference, as those of the catalogue are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kvadapters.reference import Reference
from kvconform.mutants.common import caches as b
from kvconform.mutants.common import growing as g
from kvconform.mutants.common import ring as r
from kvconform.mutants.common import stores as s
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.planting import speculating
from kvref.draft import Layer, Round

CLASS = "anomaly"
"""The class of these mutants."""


@dataclass(frozen=True)
class Common:
    """A fault, the anomaly it is, and the clauses it breaks."""

    anomaly: str
    fault: type
    clauses: str

    @property
    def adapter(self) -> Callable[[], Any]:
        """Makes the reference with this fault."""
        if issubclass(self.fault, Layer):
            return speculating(layer=self.fault)
        if issubclass(self.fault, Round):
            return speculating(self.fault)
        kinds = {self.fault.kind: self.fault} if hasattr(self.fault, "kind") else b.both(self.fault)
        return type(f"With{self.fault.__name__}", (Reference,), {"caches": {**Reference.caches, **kinds}})


COMMON = (
    Common("stale-tail", g.GrowingRewindsOneShort, "GROW-5 GROW-6"),
    Common("stale-tail", r.RingRewindsOneShort, "RING-7 RING-8"),
    Common("stale-tail", g.GrowingKeepsItsTail, "SNAP-6 SNAP-7"),
    Common("stale-tail", b.RestoresToTheEnd, "SNAP-6 SNAP-14"),
    Common("stale-tail", s.StoreKeepsItsTail, "STORE-21"),
    Common("stale-tail", s.KeepsAll, "DRAFT-18 DRAFT-21 DRAFT-22"),
    Common("stale-tail", s.KeepsOneMore, "DRAFT-18 DRAFT-22"),
    Common("stale-tail", s.BucketCutsOneShort, "BUCKET-19"),
    Common("padding-seen", g.GrowingShowsAll, "GROW-2 GROW-14"),
    Common("doubled-rows", b.RowsTwice, "GROW-1 RING-2"),
    Common("lost-rows", g.GrowingRewindsTooFar, "GROW-5"),
    Common("lost-rows", b.LastOfChunkMissing, "GROW-1 RING-2"),
    Common("lost-rows", g.GrowingForgets, "GROW-2 GROW-12"),
    Common("lost-rows", g.GrowingForgetsOne, "GROW-2 GROW-12"),
    Common("lost-rows", g.GrowingSavesOneLess, "SNAP-1"),
    Common("lost-rows", r.RingKeepsNone, "RING-3 RING-25"),
    Common("lost-rows", r.RingEvictsFirst, "RING-3 RING-18 RING-25"),
    Common("lost-rows", r.RingKeepsTheOldest, "RING-20"),
    Common("lost-rows", s.StoreInitResets, "STORE-25"),
    Common("lost-rows", s.KeepsNone, "DRAFT-18"),
    Common("lost-rows", s.DraftsAlone, "DRAFT-2 DRAFT-3 DRAFT-4"),
    Common("hole", g.GrowingSkips, "GROW-1 GROW-14"),
    Common("hole", g.GrowingSkipsAlways, "GROW-1 GROW-14"),
    Common("overwritten-rows", r.RingOverwritesTheNewest, "RING-1 RING-19"),
    Common("overwritten-rows", r.RingWrapsToOne, "RING-1 RING-19"),
    Common("overwritten-rows", s.BatchForgetsToCount, "BATCH-13"),
    Common("overwritten-rows", s.CopyOneMore, "COPY-7 COPY-9"),
    Common("keys-without-values", b.ValuesMissing, "GROW-1 RING-2 GROW-2 GROW-14 RING-1 RING-26"),
    Common("keys-without-values", b.MergesKeysTwice, "SNAP-17 SNAP-6"),
    Common("keys-without-values", s.CopyKeysOnly, "COPY-4 COPY-5"),
    Common("stale-cursor", g.GrowingStaleCursor, "GROW-6 GROW-2 GROW-14"),
    Common("stale-cursor", r.RingStaleCursor, "RING-7 RING-8 RING-27 RING-1 RING-26"),
    Common("stale-cursor", r.RingMovedByNothing, "RING-4 RING-1 RING-26"),
    Common("stale-cursor", r.RingFreesHalf, "RING-12 RING-1 RING-26 MEM-1"),
    Common("half-restored", r.RingRestoresNoOffset, "SNAP-12 SNAP-15"),
    Common("slot-order", r.RingInSlotOrder, "RING-24"),
    Common("slot-order", r.RingViewInSlotOrder, "RING-5"),
    Common("wrong-position", g.GrowingSplitsLater, "SNAP-22"),
    Common("wrong-position", s.KeepsTheNewest, "DRAFT-18"),
    Common("wrong-position", s.DraftsFromZero, "DRAFT-1"),
    Common("wrong-position", s.CopyOneFurther, "COPY-4 COPY-5"),
    Common("wrong-head", b.HeadsReversed, "GROW-1 RING-2 GROW-2 GROW-14 RING-1 RING-26"),
    Common("wrong-head", b.FirstHeadForAll, "GROW-1 RING-2 GROW-2 GROW-14 RING-1 RING-26"),
    Common("wrong-head", s.StoreHeadsReversed, "STORE-3 STORE-4"),
    Common("wrong-head", s.CopyHeadsReversed, "COPY-2 COPY-3"),
    Common("wrong-head", s.PagesHeadsReversed, "PAGE-6"),
    Common("wrong-sequence", b.FirstSequenceForAll, "GROW-23 RING-32 GROW-2 GROW-14 RING-1 RING-26"),
    Common("wrong-sequence", s.BatchNextSequence, "BATCH-13"),
    Common("wrong-sequence", s.BatchRollsBackAll, "BATCH-12"),
    Common("desynchronised-layers", s.StoreRollsBackOne, "STORE-14"),
    Common("desynchronised-layers", s.StoreResetsAllButOne, "STORE-12"),
    Common("desynchronised-layers", s.StoreLayersReversed, "STORE-3"),
    Common("desynchronised-layers", s.LastLayerLeft, "DRAFT-18"),
    Common("window-off-by-one", r.RingOneWide, "RING-1 RING-17"),
    Common("window-off-by-one", r.RingOneNarrow, "RING-1 RING-17"),
    Common("window-off-by-one", r.RingKeepsOneMore, "RING-25"),
    Common("window-off-by-one", r.RingKeepsOneLess, "RING-3 RING-25"),
    Common("window-off-by-one", b.MaskOneWide, "MASK-4"),
    Common("window-off-by-one", b.MaskOneNarrow, "MASK-4"),
    Common("logical-order-mask", r.RingMaskUnturned, "MASK-10"),
    Common("logical-order-mask", r.RingMaskOneOff, "MASK-10"),
    Common("logical-order-mask", b.UpperLeft, "MASK-2"),
    Common("wrong-mask", b.SeesTheFuture, "MASK-2"),
    Common("wrong-mask", b.Inverted, "MASK-5"),
    Common("silent-no-op", g.GrowingRewindsNowhere, "GROW-5"),
    Common("silent-no-op", r.RingRewindsNowhere, "RING-7"),
    Common("silent-no-op", b.FreeDoesNothing, "GROW-9 RING-12"),
    Common("silent-no-op", b.RestoresNothing, "SNAP-6 SNAP-12"),
    Common("silent-no-op", s.StoreResetsNothing, "STORE-12"),
    Common("silent-no-op", s.StoreLoadsNothing, "STORE-20"),
    Common("silent-no-op", s.BatchResetsNothing, "BATCH-19"),
    Common("silent-no-op", s.PagesTruncateNothing, "PAGE-22"),
    Common("silent-no-op", s.BucketCutsNothing, "BUCKET-19"),
    Common("missing-refusal", g.GrowingClamps, "GROW-7"),
    Common("needless-refusal", r.RingRefusesWhenFull, "RING-7"),
    Common("changed-though-refused", b.CountsWhatFailed, "GROW-10 RING-13"),
    Common("changed-though-refused", s.StoreHalfDone, "STORE-8"),
    Common("aliased-snapshot", b.Aliased, "SNAP-3"),
    Common("aliased-array", b.KeepsTheArrays, "GROW-13 RING-16"),
    Common("wrong-rounding", b.ThroughBf16, "GROW-12 RING-15"),
    Common("wrong-rounding", s.CopyCutsOff, "COPY-12"),
    Common("miscounted-memory", s.PagesKeepTheEnd, "PAGE-17 PAGE-22"),
)


def mutants() -> Iterator[Mutant]:
    """Every anomaly, planted."""
    for common in COMMON:
        says, clauses = (common.fault.__doc__ or "").strip(), tuple(common.clauses.split())
        yield Mutant(f"{common.anomaly}/{common.fault.__name__}", CLASS, says, clauses, common.adapter)
