"""The record of the chapter PAGE."""

from __future__ import annotations

from kvspec.chapters.arguments import OF, TO, Argument
from kvspec.chapters.record import Chapter, Column, Kind, OperationRecord, Tensor, Value
from kvspec.geometry import Config

CHAPTER = Chapter(
    "PAGE",
    kind=Kind(
        needs=("page_size", "pages"),
        may=("debug",),
        also=("append", "scribble", "plan", "attend"),
        tried=Config(page_size=1024, pages=2),
        begin=("admit",),
        ownership="PAGE-38",
        bits="PAGE-9",
    ),
    operations=(
        OperationRecord("admit", "A new sequence; the value `sequence` is its number."),
        OperationRecord(
            "fork",
            "A new sequence that shares the first n rows of another; the value `sequence` is its number.",
            (OF, Argument("n")),
        ),
        OperationRecord("truncate", "Drop the rows of a sequence from `to` on.", (OF, TO)),
        OperationRecord("drop", "Give a sequence up.", (OF,)),
        OperationRecord(
            "gather",
            "The first n rows through a block table, pages parted by commas: the tensors `gathered`.",
            (Argument("table", "table"), Argument("n", high=1 << 20)),
        ),
        OperationRecord("peek", "A page as it lies in the pool: the tensors `page`.", (Argument("page"),)),
    ),
    observe=("state",),
    values=(
        Value("sequence", "admit, fork: the number of the new sequence."),
        Value("table", "The pages of a sequence, in order.", "numbers"),
        Value("references", "In how many tables each page of the pool stands.", "numbers"),
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
