"""The record of the chapter BATCH."""

from __future__ import annotations

from kvspec.chapters.arguments import FILL, LAYER, NAMED, OF, ROWS
from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Tensor, Value

CHAPTER = Chapter(
    "BATCH",
    on=("store",),
    speaks_of=("store",),
    operations=(
        OperationRecord(
            "batch",
            "Allocate a batch of m sequences; `most` is the limit, by default 32.",
            (Argument("m"), Argument("most", default=None)),
        ),
        OperationRecord(
            "scatter",
            "Copy the store's first n rows into one sequence's place, for one layer or for all.",
            (OF, Argument("n"), LAYER),
        ),
        OperationRecord(
            "step", "Append one row to every sequence in every layer, [layers, m, kv_heads, dim].", ROWS, rows=True
        ),
        OperationRecord("resetbatch", "Set every sequence's length to 0."),
        OperationRecord("freebatch", "Return the batch's memory."),
        OperationRecord(
            "capture", "Capture a step of the batch under a name.", (NAMED,), makes=("name",), names="captured work"
        ),
        OperationRecord(
            "replay",
            "Replay the captured step on new rows, [layers, m, kv_heads, dim].",
            (NAMED, FILL),
            rows=True,
            uses=("name",),
            names="captured work",
        ),
    ),
    values=(Value("moved", "Whether a buffer of the batch has moved to another address.", "truth"),),
    tensors=(Tensor("batch"),),
    columns=(
        Column("moved", "truth"),
        Column(r"layer (\d+), sequence (\d+)", "letters", r"batch.\1.\2"),
    ),
    probes=(Probe(("append 2", "batch 2"), ("store",)),),
)
