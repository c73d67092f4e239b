"""The same bits everywhere: a fixed set of attends, what an adapter makes of them, and one hash of it all.

The traces are ordinary ones, driven through a session, here or in a worker. Nothing is judged: every bit of every
output goes into the hash, so two adapters with one hash compute strict attention alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from kvconform.oracle.reference import Performs
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.geometry import DTYPES, Array
from kvspec.operations import notation
from kvspec.rows import settled
from kvspec.trace import Trace

NEEDED = ("growing", "ring", "store", "batch", "page", "bucket", "attention")
"""What an adapter must claim at level storage to be driven through all of it."""

GEOMETRIES = ((2, 2, 5, 7), (1, 4, 17, 5), (2, 6, 64, 33), (1, 2, 128, 80))
"""kv_heads, query heads, k_dim and v_dim."""


class Output(NamedTuple):
    """What one operation of a trace gave: an array, or, where it did not go well, what happened instead."""

    trace: Trace
    op: int
    array: Array | None
    trouble: str = ""


@cache
def traces() -> tuple[Trace, ...]:
    """All of them, in order: every kind of cache in every dtype and geometry."""
    return tuple(notation.trace(*parts) for parts in _parts())


def _parts() -> Iterator[tuple[str, str, str]]:
    """Kind, config and operations of each trace."""
    for (kv_heads, heads, k_dim, v_dim), dtype in product(GEOMETRIES, DTYPES):
        fields = f"kv_heads={kv_heads} k_dim={k_dim} v_dim={v_dim} dtype={dtype}"
        for (kind, own), ops in DRIVEN.items():
            yield kind, f"{fields} {own}", ops.replace("HEADS", f"heads={heads}")


DRIVEN = {
    ("growing", "step=16"): """
        append 2 fill=bits; rewind 0; append 29 fill=random; attend 1 HEADS; attend 4 HEADS splits=2;
        attend 1 HEADS queries=huge splits=3; attend 1 HEADS queries=tiny; attend 1 HEADS queries=zero through none;
        append 30 fill=random; attend 3 HEADS splits=2 through causal & window=40; attend 1 HEADS splits=5;
        append 40 fill=random; attend 1 HEADS splits=3 through window=70; attend 2 HEADS splits=4 through none
    """,
    ("growing", "batch=2"): """
        append 3 fill=random; attend 2 HEADS through 11011/01101 & causal; attend 1 HEADS through 101010+010110;
        attend 1 HEADS through [0.5 -1.25 3 -inf 0 100 -0.75]; attend 1 HEADS through 00000000; append 1 fill=edges;
        attend 1 HEADS; attend 1 HEADS through 1 & window=3; append 1 fill=bits; attend 1 HEADS;
        attend 2 HEADS splits=2
    """,
    ("ring", "window=20"): """
        append 40 fill=random; attend 1 HEADS; attend 1 HEADS splits=2; attend 5 HEADS splits=2; attend 1 HEADS;
        attend 1 HEADS through none; attend 1 HEADS through window=7; attend 1 HEADS queries=huge
    """,
    ("ring", "window=75"): """
        append 60 fill=random; attend 1 HEADS splits=2; append 50 fill=random; attend 3 HEADS splits=2;
        attend 1 HEADS splits=3; attend 1 HEADS splits=3; attend 1 HEADS splits=4
    """,
    ("store", "layers=2 max_len=70"): """
        append 31 fill=random; attend 1 HEADS layer=0; attend 3 HEADS splits=2 layer=1;
        captureattend w 0 HEADS splits=2; replayattend w; replayattend w queries=huge; attend 1 HEADS layer=0;
        replayattend w; batch 3; scatter 0 33; scatter 2 5; step fill=random;
        attendbatch 0 HEADS; attendbatch 1 HEADS splits=2; rollback 20 sequence=0;
        step fill=random; attendbatch 1 HEADS
    """,
    ("page", "page_size=5 pages=20"): """
        admit; append 34 fill=random; attend 1 HEADS; fork 0 32; attend 3 HEADS splits=2 sequence=1;
        attend 1 HEADS sequence=0; truncate 1 20; append 20 fill=random sequence=1;
        attend 2 HEADS splits=2 sequence=1
    """,
    ("bucket", "layers=2 bounds=4-16-64"): """
        prefill 3; decode HEADS; decode HEADS splits=2; block 3 HEADS; unbind; decode HEADS; prefill 40;
        decode HEADS splits=2 refresh=1; block 5 HEADS splits=3; encode 35; cross 2 HEADS splits=2
    """,
}
"""What is done on each kind of cache, HEADS being as many query heads as the geometry says."""


def outputs(session: Performs, trace: Trace) -> Iterator[Output]:
    """What the operations of a trace give, one after another; it ends where one does not go well."""
    trace_inputs = TraceInputs(trace)
    step = session.begin(trace.kind, trace.config)
    for i, op in enumerate(trace.ops):
        if step.result == "ok":
            step = session.do(op, trace_inputs.make(op))
            trace_inputs.done(op, step.result)
        if step.result != "ok":
            yield Output(trace, i, None, " ".join(f"{step.result} {step.clause} {step.message}".split()))
            return
        if (found := step.arrays.get("output")) is not None:
            yield Output(trace, i, settled(found))


def digest(found: list[Output]) -> str:
    """SHA-256 over everything, shapes and troubles included."""
    hashed = hashlib.sha256()
    for output in found:
        hashed.update(f"{output.op} {_what(output)}\n".encode())
        if output.array is not None:
            hashed.update(output.array.tobytes())
    return hashed.hexdigest()


def difference(want: list[Output], found: list[Output]) -> str:
    """The first output, and of it the first element, in which an adapter differs; empty where none does."""
    for right, other in zip(want, found, strict=False):
        if said := _differs(right, other):
            short = replace(right.trace, ops=right.trace.ops[: right.op + 1])
            return f"{notation.sentence(short)}\n  {said}"
    return "" if len(want) == len(found) else f"{len(found)} outputs, not {len(want)}"


def _differs(want: Output, found: Output) -> str:
    if want.array is None or found.array is None or want.array.shape != found.array.shape:
        return f"expected {_what(want)}, found {_what(found)}"
    bits = want.array.view(np.uint32) != found.array.view(np.uint32)
    if not bits.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bits)[0])
    return f"element {list(at)}: expected {_number(want.array[at])}, found {_number(found.array[at])}"


def _what(output: Output) -> str:
    return output.trouble if output.array is None else f"an output {list(output.array.shape)}"


def _number(x: np.float32) -> str:
    return f"{x!s} ({float(x).hex()})"
