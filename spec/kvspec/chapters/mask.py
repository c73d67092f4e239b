"""The record of the chapter MASK."""

from __future__ import annotations

from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Tensor

CACHES = ("growing", "ring")

CHAPTER = Chapter(
    "MASK",
    on=CACHES,
    speaks_of=CACHES,
    operations=(
        OperationRecord(
            "mask",
            "The mask for the history of the append just before, or of the draft just before on this cache's layer "
            "of a `round`: the intersection of the parts, in position order.",
            (Argument("parts", "mask"), Argument("round", "name", default=None, needs="draft")),
            uses=("round",),
            names="round",
        ),
    ),
    observe=("mask",),
    tensors=(Tensor("mask", pair=False),),
    columns=(Column("each query sees", "queries", "sees"), Column("mask", "mask", storage=True)),
    probes=(Probe(("append 2", "mask causal"), CACHES),),
)
