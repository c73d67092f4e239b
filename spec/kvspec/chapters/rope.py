"""The record of the chapter ROPE."""

from __future__ import annotations

from kvspec.chapters.arguments import DTYPE, FAR, RANDOM, RESIDENT, N, flag, sizes
from kvspec.chapters.record import Argument, Chapter, Column, OperationRecord, Probe, Tensor

CHAPTER = Chapter(
    "ROPE",
    speaks_of=("growing", "ring", "store", "page"),
    operations=(
        OperationRecord(
            "rotate",
            "Key rows turned by RoPE, the first at position `at`, each further one `stride` on; then all of them "
            "`by` so many positions more; of each row the first `dims` elements: the tensor `rotated`. Sizes may "
            "be wrong on purpose: `positions` is how many positions there are, if not n. `halved` says how the "
            "rows were made.",
            (
                N,
                Argument("at", low=-FAR, high=FAR),
                Argument("pairing", "pairing", default="neox"),
                Argument("base", default=10000),
                Argument("dims", default=None),
                Argument("by", low=-FAR, high=FAR, default=None),
                Argument("stride", low=-FAR, high=FAR, default=1),
                *sizes("positions", "batch", "kv_heads", "k_dim", low=0),
                flag("halved"),
                DTYPE,
                RANDOM,
                RESIDENT,
            ),
            rows=True,
            layered=True,
        ),
    ),
    tensors=(Tensor("rotated", pair=False),),
    columns=(Column("rotated", "rotated", storage=True),),
    probes=(Probe(("rotate 1 1",)),),
)
