"""The record of the chapter PAGE."""

from __future__ import annotations

from kvspec.chapters.arguments import OF, TO
from kvspec.chapters.record import Argument, Chapter, Column, Kind, OperationRecord, Tensor, Value

CHAPTER = Chapter(
    "PAGE",
    kind=Kind(
        needs=("page_size", "pages"),
        may=("debug",),
        also=("append", "scribble", "plan", "attend"),
        tried={"page_size": 1024, "pages": 2},
        begin=("admit",),
        ownership="PAGE-38",
        bits="PAGE-9",
    ),
    operations=(
        OperationRecord("admit", "Add a sequence; the value `sequence` is its number."),
        OperationRecord(
            "fork",
            "Add a sequence that shares the first n rows of another; the value `sequence` is its number.",
            (OF, Argument("n")),
        ),
        OperationRecord("truncate", "Drop the rows of a sequence from `to` on.", (OF, TO)),
        OperationRecord("drop", "Drop a sequence and free its number.", (OF,)),
        OperationRecord(
            "gather",
            "Read the first n rows through a block table, pages separated by commas: the tensors `gathered`.",
            (Argument("table", "table"), Argument("n", high=1 << 20)),
        ),
        OperationRecord("peek", "Read a page's raw content in the pool: the tensors `page`.", (Argument("page"),)),
    ),
    observe=("state",),
    values=(
        Value("sequence", "admit, fork: the number of the new sequence."),
        Value("table", "The pages of a sequence, in order.", "numbers"),
        Value("references", "For each page of the pool, the number of tables that contain it.", "numbers"),
        Value("free", "How many pages of the pool no sequence has."),
    ),
    tensors=(Tensor("gathered"), Tensor("page")),
    columns=(
        Column("sequence"),
        Column("free"),
        Column("references", "numbers", storage=True),
        Column("gathered", "letters", storage=True),
        Column("page", "letters", storage=True),
        Column(r"sequence (\d+)", "letters", r"state.\1"),
        Column(r"table (\d+)", "numbers", r"table.\1", storage=True),
    ),
)
