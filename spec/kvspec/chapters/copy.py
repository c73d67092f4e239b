"""The record of the chapter COPY."""

from __future__ import annotations

from kvspec.chapters.arguments import FAR, ROWS, N, flag, sizes
from kvspec.chapters.record import Argument, Chapter, Kind, OperationRecord

AT = Argument("at", high=FAR)

CHAPTER = Chapter(
    "COPY",
    kind=Kind(
        needs=("capacity", "layout"),
        also=("scribble", "plan"),
        tried={"capacity": 4, "layout": "token"},
        ownership="COPY-10",
    ),
    operations=(
        OperationRecord(
            "copy",
            "The first n rows of sources [rows, kv_heads, dim], of any dtype, into the slots from `at` on; "
            "sliding: modulo the capacity. `rows` is how many rows the sources have, if not n.",
            (N, AT, flag("sliding"), *sizes("rows", low=0), *ROWS),
            rows=True,
        ),
        OperationRecord(
            "alias",
            "Copy with the buffer's own n slots from `source` on as the source.",
            (N, AT, Argument("source", low=0), flag("sliding")),
        ),
    ),
    observe=("state",),
)
