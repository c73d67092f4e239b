"""The record of the chapter ATTN."""

from __future__ import annotations

from functools import partial

from kvspec.chapters.arguments import (
    ASKED,
    DTYPE,
    LAYER,
    MISFIT,
    NAMED,
    RANDOM,
    RESIDENT,
    ROWS,
    SEQUENCE,
    TURNED,
    WRONG,
    N,
)
from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Tensor

Captured = partial(OperationRecord, names="captured attention")

CHAPTER = Chapter(
    "ATTN",
    on=("store",),
    operations=(
        OperationRecord(
            "attend",
            "Rows as for append, n of each sequence; then n queries [batch, heads, n, k_dim] in f32 attend through "
            "the mask `through`, in so many `splits`; with `rope`, queries and keys are turned at their positions "
            "first. The answer's tensor `output` is [batch, heads, n, v_dim] in f32. `layer` is one of a store, "
            "`sequence` one of a paged cache. into: the output is to be written where the caller says. What begins "
            "with q_ and out_ are sizes and dtypes of the queries and of that output which are wrong on purpose; "
            "with out_readonly, that output can only be read, where it is on the host.",
            (
                *(N, *ASKED, *WRONG, *TURNED),
                *(*MISFIT, DTYPE, RANDOM, RESIDENT),
                LAYER,
                SEQUENCE,
                Argument("through", "mask", default=("causal",)),
            ),
            rows=True,
            queries=True,
        ),
        OperationRecord(
            "attendbatch",
            "Attend with one query for each sequence of the batch, [m, heads, 1, k_dim], over its rows in a layer.",
            (Argument("layer"), *ASKED, *WRONG, RESIDENT),
            queries=True,
            needs=("batch",),
        ),
        Captured(
            "captureattend",
            "Capture an attend of one row on a store's layer under a name.",
            (NAMED, Argument("layer"), *ASKED[:2]),
            makes=("name",),
        ),
        Captured(
            "replayattend",
            "Replay the captured attend on new queries and rows.",
            (NAMED, ASKED[0], *ASKED[2:3], *ASKED[4:5], *ROWS[:-2], RANDOM, RESIDENT),
            rows=True,
            queries=True,
            uses=("name",),
        ),
    ),
    tensors=(Tensor("output", pair=False),),
    columns=(
        Column("output", "outputs"),
        Column(r"output of ((?:layer|sequence|head) \d+)", "outputs", r"output of \1"),
    ),
    probes=(
        Probe(("append 1", "attend 1"), ("growing", "ring")),
        Probe(("append 1", "attend 1 layer=0"), ("store",)),
        Probe(("admit", "append 1", "attend 1"), ("page",)),
    ),
)
