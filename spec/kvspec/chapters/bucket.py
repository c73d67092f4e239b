"""The record of the chapter BUCKET."""

from __future__ import annotations

from kvspec.chapters.arguments import ASKED, LAYERED, RESIDENT, TO, WRONG, N, flag
from kvspec.chapters.record import Argument, Chapter, Column, Kind, OperationRecord, Tensor, Value

REFRESH = flag("refresh")
PAST = Argument("past", default=None)
"""The length that the caller expects."""

CHAPTER = Chapter(
    "BUCKET",
    kind=Kind(
        needs=("layers", "bounds"),
        also=("scribble",),
        layer_axis=True,
        tried={"layers": 1, "bounds": "2-4"},
        ownership="BUCKET-28",
        bits="BUCKET-27",
    ),
    operations=(
        OperationRecord(
            "prefill",
            "Replace the host's rows by these, [layers, batch, kv_heads, n, dim]; sizes may be wrong on purpose.",
            (N, *LAYERED),
            rows=True,
            layered=True,
        ),
        OperationRecord(
            "bind",
            "Install handles as the next step would; with `refresh`, from the host's rows.",
            (REFRESH,),
        ),
        OperationRecord(
            "decode",
            "One step of the graph, on one row and one query of each layer; `past` is the length counted on, "
            "`refresh` has handles installed from the host's rows first. The answer's tensor `output` is [layers, "
            "batch, heads, 1, v_dim] in f32.",
            (*ASKED, *WRONG, *LAYERED, RESIDENT, REFRESH, PAST),
            rows=True,
            layered=True,
            queries=True,
        ),
        OperationRecord(
            "block",
            "Run a block of n rows and queries of each layer, which commits nothing.",
            (N, *ASKED, *WRONG, *LAYERED, RESIDENT, PAST),
            rows=True,
            layered=True,
            queries=True,
        ),
        OperationRecord("unbind", "Forget the bounds of the installed handles."),
        OperationRecord("sync", "Copy the device's rows to the host."),
        OperationRecord("cut", "Reduce the past rows to `to`.", (TO,)),
        OperationRecord(
            "encode",
            "Install rows for cross-attention, [layers, batch, kv_heads, n, dim].",
            (N, *LAYERED, RESIDENT),
            rows=True,
            layered=True,
        ),
        OperationRecord(
            "cross",
            "Attend with queries [layers, batch, heads, n, k_dim] over those rows.",
            (N, *ASKED, *WRONG, RESIDENT),
            queries=True,
        ),
    ),
    observe=("state",),
    values=(
        Value("past", "Rows of each layer of a bucketed cache."),
        Value("bound", "The bound that its handles are installed for; null where there is none."),
        Value(
            "key",
            "decode, block: the key of the graph that ran, its bound; where the batch is larger than 1, batch << "
            "32 | bound.",
        ),
        Value(
            "extent",
            "decode, block: [rows of the graph that took part, rows that it has for them].",
            "numbers",
            2,
        ),
    ),
    tensors=(Tensor("host"), Tensor("handle")),
    columns=(
        Column("past"),
        Column("bound", "number or none", storage=True),
        Column("key", storage=True),
        Column("extent", "numbers", storage=True),
        Column(r"host (\d+)", "letters", r"host.\1"),
        Column(r"handle (\d+)", "letters", r"handle.\1", storage=True),
    ),
)
