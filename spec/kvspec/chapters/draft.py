"""The record of the chapter DRAFT."""

from __future__ import annotations

from functools import partial

from kvspec.chapters.arguments import NAMED, ROWS, N, flag
from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Value

CACHES = ("growing", "ring")

Operation = partial(OperationRecord, names="round")

CHAPTER = Chapter(
    "DRAFT",
    on=CACHES,
    speaks_of=CACHES,
    operations=(
        Operation(
            "speculate",
            "Begin a round over one cache a layer: `layers` names them, `-` a layer that has none. All caches of "
            "the round are observed, each under its letter (`state.B`).",
            (NAMED, Argument("layers", "layers"), flag("isolated")),
            makes=("name",),
        ),
        Operation(
            "draft",
            "Append drafts, rows as for append, to this cache's layer of the round; `drafted` is the position "
            "after them.",
            (NAMED, N, *ROWS),
            rows=True,
            uses=("name",),
        ),
        Operation(
            "commit",
            "Keep the first n drafts on every layer, drop the others, end the round.",
            (NAMED, Argument("n")),
            uses=("name",),
        ),
        Operation("abandon", "End the round; every draft is dropped.", (NAMED,), uses=("name",)),
    ),
    values=(Value("drafted", "draft: the position after the last draft on that layer."),),
    columns=(Column("drafted"),),
    probes=(Probe(("append 2", "speculate r A"), CACHES),),
)
