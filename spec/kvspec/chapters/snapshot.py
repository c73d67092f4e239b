"""The record of the chapter SNAP."""

from __future__ import annotations

from functools import partial

from kvspec.chapters.arguments import NAMED, TO
from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Value

CACHES = ("growing", "ring")

Range = partial(
    Value,
    says="[start, stop, bytes]; null where nothing was saved.",
    holds="numbers",
    count=3,
    form="[start, stop, bytes] or null",
)

Operation = partial(OperationRecord, names="snapshot")

CHAPTER = Chapter(
    "SNAP",
    on=CACHES,
    speaks_of=CACHES,
    operations=(
        Operation(
            "snapshot",
            "Save the rows from `start` on under a name; the value `snapshot` tells its range and bytes.",
            (NAMED, Argument("start", default=0)),
            makes=("name",),
        ),
        Operation("restore", "Bring the cache to offset `to` with the saved rows.", (NAMED, TO), uses=("name",)),
        Operation(
            "split",
            "Split a snapshot into two; consumes it.",
            (NAMED, Argument("at"), Argument("parent", "name"), Argument("child", "name")),
            makes=("parent", "child"),
            uses=("name",),
        ),
        Operation(
            "merge",
            "Merge two snapshots into one; consumes both.",
            (Argument("parent", "name"), Argument("child", "name"), NAMED),
            makes=("name",),
            uses=("parent", "child"),
        ),
        Operation("close", "Return a snapshot's memory.", (NAMED,), uses=("name",)),
    ),
    values=(
        Range("snapshot"),
        Range("parent"),
        Range("child"),
        Value("bytes", "close: bytes the snapshot still holds."),
    ),
    columns=(Column("bytes", storage=True), Column("snapshot", "ranges")),
    probes=(Probe(("append 2", "snapshot s"), CACHES),),
)
