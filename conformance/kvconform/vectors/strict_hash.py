"""The strict hash: runs a fixed set of attends on an adapter and hashes all outputs.

The traces are ordinary ones, run by a session, here or in a worker. Nothing is judged: every bit of every output
goes into the hash, so adapters with the same hash compute strict attention alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from kvconform.judge.lockstep import Performs
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec import notation
from kvspec.geometry import DTYPES, Array
from kvspec.rows.fills import settled
from kvspec.tables import table
from kvspec.trace import Trace

NEEDED = ("growing", "ring", "store", "batch", "page", "bucket", "attention")
"""Chapters that an adapter must claim at level storage to run all traces."""

GEOMETRIES = ((2, 2, 5, 7), (1, 4, 17, 5), (2, 6, 64, 33), (1, 2, 128, 80))
"""kv_heads, query heads, k_dim and v_dim."""


class Output(NamedTuple):
    """The output of one operation: an array, or a text that says what failed."""

    trace: Trace
    op: int
    array: Array | None
    trouble: str = ""


@cache
def traces() -> tuple[Trace, ...]:
    """Give all traces in order: every kind of cache in every dtype and geometry."""
    return tuple(notation.trace(*parts) for parts in _parts())


@cache
def driven() -> list[dict[str, str]]:
    """Give the work for each dtype and geometry: `kind`, `config` and `operations`, in the notation."""
    rows: list[dict[str, str]] = table("kvconform.vectors", "strict_hash")["driven"]
    return rows


def _parts() -> Iterator[tuple[str, str, str]]:
    """Give kind, config and operations of each trace."""
    for (kv_heads, heads, k_dim, v_dim), dtype in product(GEOMETRIES, DTYPES):
        fields = f"kv_heads={kv_heads} k_dim={k_dim} v_dim={v_dim} dtype={dtype}"
        for row in driven():
            yield row["kind"], f"{fields} {row['config']}", row["operations"].replace("HEADS", f"heads={heads}")


def outputs(session: Performs, trace: Trace) -> Iterator[Output]:
    """Give the outputs of a trace's operations in order; stop at the first failure."""
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
    """Hash all outputs with SHA-256, including shapes and failures."""
    hashed = hashlib.sha256()
    for output in found:
        hashed.update(f"{output.op} {_what(output)}\n".encode())
        if output.array is not None:
            hashed.update(output.array.tobytes())
    return hashed.hexdigest()


def difference(want: list[Output], found: list[Output]) -> str:
    """Name the first output and element in which an adapter differs; empty if none does."""
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
