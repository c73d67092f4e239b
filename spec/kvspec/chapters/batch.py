"""The record of the chapter BATCH."""

from __future__ import annotations

from kvspec.chapters.arguments import FILL, LAYER, NAMED, OF, ROWS, Argument
from kvspec.chapters.record import Chapter, Column, OperationRecord, Probe, Tensor, Value

CHAPTER = Chapter(
    "BATCH",
    on=("store",),
    speaks_of=("store",),
    operations=(
        OperationRecord(
            "batch",
            "Allocate for m sequences; `most` is how many are allowed, if not 32.",
            (Argument("m"), Argument("most", default=None)),
        ),
        OperationRecord(
            "scatter",
            "The store's first n rows into one sequence's place, of one layer or of all.",
            (OF, Argument("n"), LAYER),
        ),
        OperationRecord(
            "step", "Append one row to every sequence in every layer, [layers, m, kv_heads, dim].", ROWS, rows=True
        ),
        OperationRecord("resetbatch", "Every sequence's length to 0."),
        OperationRecord("freebatch", "Return the batch's memory."),
        OperationRecord(
            "capture", "Capture a step of the batch under a name.", (NAMED,), makes=("name",), names="captured work"
        ),
        OperationRecord(
            "replay",
            "The captured step on new rows, [layers, m, kv_heads, dim].",
            (NAMED, FILL),
            rows=True,
            uses=("name",),
            names="captured work",
        ),
    ),
    values=(Value("moved", "Whether a buffer of the batch has another address than before.", "truth"),),
    tensors=(Tensor("batch"),),
    columns=(
        Column("moved", "truth"),
        Column(r"layer (\d+), sequence (\d+)", "letters", r"batch.\1.\2"),
    ),
    probes=(Probe(("append 2", "batch 2"), ("store",)),),
)
