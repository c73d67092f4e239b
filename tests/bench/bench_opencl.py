"""Measures operations per second through a session, for the OpenCL adapter and the reference in the same run.

python tests/bench/bench_opencl.py [seconds for each adapter and line, default 2]

Small caches (2 heads, 8 and 6 dims, windows up to 8), stores and buffers, with everything observed at every step,
as the harness drives an adapter. Which device is used: see KVCONFORM_OPENCL.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from kvadapters.reference import Reference
from kvconform.oracle.trace_inputs import TraceInputs
from kvgpu.adapters import OpenCL
from kvspec.notation import trace
from kvspec.operations.table import Operation
from kvspec.session.driver import Session
from kvspec.session.step import Inputs
from kvspec.trace import Trace

ROUNDS = 5

APPENDS = "append 3; append 1; append 1; append 2; append 1; append 1; append 1; append 5; append 1; append 1; "
CACHE = f"{APPENDS}snapshot s; append 1; restore s 9; view; mask causal & window=2; rewind 6; {APPENDS}"
ROUND = "speculate r A; draft r 3; commit r 2; speculate r A; draft r 1; draft r 2; abandon r; "
STORE = "append 1; append 2; append 1 layer=1; rollback 2; save s; zero; load s; setlength 0 4; fingerprint 1; "
BATCH = "append 4; batch 3; scatter 0 4; scatter 1 2; step; step; rollback 3 sequence=0; capture w; replay w; "

WORK: dict[str, tuple[Trace, ...]] = {
    "caches": (
        *(trace("ring", f"window={window} step=4", CACHE) for window in (1, 3, 8)),
        *(trace("growing", fields, CACHE) for fields in ("step=4", "")),
    ),
    "rounds": (trace("ring", "window=4", ROUND * 3), trace("growing", "step=4", ROUND * 3)),
    "copies": tuple(
        trace("copy", f"capacity=6 layout={layout}", "copy 3 0; copy 2 5 sliding=1; copy 4 2 dtype=f32; " * 3)
        for layout in ("token", "head")
    ),
    "stores": (trace("store", "layers=3 max_len=8", STORE * 3),),
    "batches": (trace("store", "layers=2 max_len=8", BATCH * 3),),
}
"""The repeated work; some of it is refused."""

Supplied = list[tuple[Operation, Inputs]]


def supplied(given: Trace) -> Supplied:
    """Make the operations of a trace with their inputs beforehand."""
    trace_inputs, session, made = TraceInputs(given), Session(Reference(), ()), Supplied()
    session.begin(given.kind, given.config)
    for op in given.ops:
        made.append((op, trace_inputs.make(op)))
        trace_inputs.done(op, session.do(*made[-1]).result)
    return made


def steps(adapter: Any, work: Sequence[tuple[Trace, Supplied]]) -> Iterator[None]:
    """Repeat the work; yield once a step."""
    for start, todo in itertools.cycle(work):
        session = Session(adapter)
        session.begin(start.kind, start.config)
        for op, given in todo:
            step = session.do(op, given)
            assert step.result in ("ok", "refused"), step
            yield


def rate(adapter: Any, work: Sequence[tuple[Trace, Supplied]], seconds: float) -> float:
    """Measure operations per second."""
    begin, done = time.perf_counter(), 0
    for _ in steps(adapter, work):
        done += 1
        if time.perf_counter() - begin > seconds:
            break
    return done / (time.perf_counter() - begin)


def line(name: str, found: Sequence[float], form: str) -> str:
    """Write a median and the spread of the rounds."""
    shown = (format(x, form) for x in (statistics.median(found), min(found), max(found)))
    return "{:22} {:>8} ({} to {})".format(name, *shown)


def main(seconds: float) -> None:
    opencl, reference = OpenCL(), Reference()
    print(opencl.describe()["device"])
    for name, traces in WORK.items():
        work = [(t, supplied(t)) for t in traces]
        rate(opencl, work, 1.0)
        found = [tuple(rate(a, work, seconds / ROUNDS) for a in (opencl, reference)) for _ in range(ROUNDS)]
        print(line(f"{name}, opencl", [a for a, _ in found], ",.0f"), "operations/s")
        print(line(f"{name}, reference", [b for _, b in found], ",.0f"), "operations/s")
        print(line(f"{name}, ratio", [a / b for a, b in found], ".3f"))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
