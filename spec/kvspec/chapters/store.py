"""The record of the chapter STORE."""

from __future__ import annotations

from kvspec.chapters.arguments import DTYPE, GEOMETRY, NAMED, TO, sizes
from kvspec.chapters.record import Argument, Chapter, Column, Kind, OperationRecord, Tensor, Value

CHAPTER = Chapter(
    "STORE",
    kind=Kind(
        needs=("layers", "max_len"),
        also=("append", "scribble", "plan", "fit", "attend", "rotate"),
        tried={"layers": 2, "max_len": 1026},
        ownership="STORE-11",
        bits="STORE-6",
    ),
    operations=(
        OperationRecord("init", "Initialise the store again, with this config.", GEOMETRY, config=True),
        OperationRecord("reset", "Set every layer's length to 0."),
        OperationRecord("zero", "Set every layer's length to 0, and clear the rows."),
        OperationRecord(
            "rollback",
            "Lower every layer that is longer to `to`; with `sequence`, that sequence of the batch.",
            (TO, Argument("sequence", default=None, needs="batch")),
        ),
        OperationRecord("setlength", "Set the length of one layer.", (Argument("layer"), Argument("n"))),
        OperationRecord(
            "save",
            "Save a host snapshot under a name: the tensors `saved.LAYER`.",
            (NAMED,),
            makes=("name",),
            names="saved store",
        ),
        OperationRecord(
            "load",
            "The host snapshot of that name back, changed as the other arguments say: so many layers, heads, "
            "elements, value rows, or another dtype; what is missing is zeros.",
            (NAMED, *sizes("values", "layers", "kv_heads", "k_dim", "v_dim", low=0), DTYPE),
            uses=("name",),
            names="saved store",
        ),
        OperationRecord(
            "fingerprint",
            "Sum the key row of layer 0, head 0 at a position; the result is text, as Python's repr writes it.",
            (Argument("position"),),
        ),
    ),
    observe=("state",),
    values=(
        Value("lengths", "The length of each layer of a store.", "numbers"),
        Value("sequences", "The length of each sequence of its batch; null if there is no batch.", "numbers"),
        Value("fingerprint", "The sum, as text.", "text"),
    ),
    tensors=(Tensor("saved"),),
    columns=(
        Column("lengths", "numbers"),
        Column("sequences", "numbers"),
        Column("fingerprint", "text"),
        Column(r"layer (\d+)", "letters", r"state.\1"),
        Column(r"saved layer (\d+)", "letters", r"saved.\1"),
    ),
)
