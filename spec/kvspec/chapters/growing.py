"""The record of the chapter GROW."""

from __future__ import annotations

from kvspec.chapters.arguments import LAYER, ROWS, SEQUENCE, TO, N
from kvspec.chapters.record import Chapter, Column, Kind, OperationRecord, Tensor, Value

CHAPTER = Chapter(
    "GROW",
    kind=Kind(
        sequence=True,
        grows_with_drafts=True,
        also=("plan", "fit", "attend", "rotate"),
        ownership="GROW-13",
        bits="GROW-12",
    ),
    operations=(
        OperationRecord(
            "append",
            "Rows at the positions from the offset on, [batch, kv_heads, n, dim]; on a store behind the length of "
            "every layer, [layers, kv_heads, n, dim], or of one `layer`, [1, kv_heads, n, dim]. Sizes and dtype "
            "may be wrong on purpose. `values` is how many value rows there are, if not n.",
            (N, *ROWS, LAYER, SEQUENCE),
            rows=True,
            layered=True,
        ),
        OperationRecord("view", "Read the view."),
        OperationRecord(
            "ask", "Ask whether a rewind to `to` would be accepted: the value `can`; nothing changes.", (TO,)
        ),
        OperationRecord(
            "rewind", "Make `to` the offset; the value `can` is what the cache said of it just before.", (TO,)
        ),
        OperationRecord("free", "Return to the state of a cache never written."),
        OperationRecord(
            "scribble",
            "Overwrite the arrays that were handed in and out on the caller's side; nothing for an engine in "
            "another process to do.",
        ),
    ),
    values=(
        Value("offset", "Tokens appended and not rolled back."),
        Value("retained", "Rows that can still be read."),
        Value("buffered", "Rows on the storage axis of the state."),
        Value("capacity", "Rows allocated."),
        Value("can", "ask, rewind: whether a rewind would be accepted, asked before it was tried.", "truth"),
        Value(
            "intact",
            "scribble, rotate: whether arrays handed in and out still held what they held; left out where none is "
            "shared.",
            "truth",
        ),
    ),
    tensors=(Tensor("history"), Tensor("view"), Tensor("state")),
    columns=(
        Column("offset", "offset"),
        Column("slots", "letters", "state", storage=True),
        Column("history", "letters", storage=True),
        Column("view", "letters"),
        Column("retained"),
        Column("capacity", storage=True, grown=True),
        Column("can rewind", "truth", "can"),
        Column(r"([A-Z]) slots", "letters", r"state.\1", storage=True),
        Column(r"([A-Z]) offset", "number", r"offset.\1"),
    ),
)
