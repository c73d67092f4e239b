"""The record of the chapter MEM."""

from __future__ import annotations

from kvspec.chapters.arguments import DTYPE, HUGE, N, sizes
from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Value

CHAPTER = Chapter(
    "MEM",
    operations=(
        OperationRecord(
            "plan",
            "Plan bytes of rows allocated after an append of n rows, and the peak during it: the value `plan`.",
            (N,),
        ),
        OperationRecord(
            "fit",
            "How many sequences of this config fit into `free` bytes less `reserve`, and whether one does, as the "
            "value `fit`; at most `most`, if not 32.",
            (
                Argument("free", low=0, high=HUGE),
                Argument("reserve", low=0, high=HUGE, default=None),
                Argument("most", default=None),
                *sizes("layers", "max_len", "kv_heads", "k_dim", "v_dim", low=0),
                DTYPE,
            ),
            config=True,
        ),
    ),
    observe=("held",),
    values=(
        Value("held", "Bytes of rows that the cache has allocated."),
        Value("plan", "[bytes held after the append, bytes at most during it].", "numbers", 2),
        Value("fit", "[the largest batch, 1 if one sequence fits and 0 if not].", "numbers", 2),
    ),
    columns=(
        Column("held", storage=True, grown=True),
        Column("plan", "numbers", storage=True, grown=True),
        Column("fit", "numbers"),
    ),
    probes=(
        Probe(("plan 1",)),
        Probe(("fit 1000000",)),
    ),
)
