"""Faults in the text of the fast kernel for CPUs that begin at thousands of rows: the large traces find each."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest

from kvconform.generate.large.boundaries import sizes
from kvconform.judge import trial
from kvgpu.adapters import Fast
from kvgpu.runtimes import opencl_devices
from kvgpu.runtimes.fast import row_attention
from kvgpu.runtimes.fast.opencl_fast import FastRuntime
from kvspec.contract import description
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in

SIZES = {size.name: size for size in sizes() if size.chapter == "attention"}


class Fault(NamedTuple):
    """`was` stands once in the text; with `now` it is wrong from `begin` rows on. Traces of `size` ask about it."""

    was: str
    now: str
    begin: int
    size: str = "rows on a growing"


NEXT = "const int n = (int)min(until - t, (i64)BLOCK);"
ROW = "(entry * apart + ((t) < before ? start + (t) : then + (t)-before))"
LAST = "until = min(from + (split + 1) * each, stop);"

FAULTS = {
    "the newest row is lost": Fault(LAST, LAST.replace("stop);", "stop - (stop - from >= 1024));"), 1024),
    "a block is not weighed": Fault(NEXT, f"{NEXT} if (t >= 1024 && t < 1024 + BLOCK) continue;", 1025),
    "the sums are not scaled down": Fault(
        NEXT, f"{NEXT} if (t >= 4096) for (int h = 0; h < HEADS; ++h) of.l[h] = 0.0f;", 4097
    ),
    "a row has 12 bits": Fault(ROW, ROW.replace("start + (t)", "start + (t) % 4096"), 4097),
    "a row has 15 bits": Fault(ROW, ROW.replace("start + (t)", "start + (t) % 32768"), 32769),
    "a row has 15 bits, in a store": Fault(ROW, ROW.replace("(t)", "((t) % 32768)"), 32769, "rows on a store"),
    "a table has 16 entries": Fault(
        "(first + (t)) / slots]", "(first + (t)) / slots % 16]", 4097, "rows on a page"
    ),
    "the last split is left out": Fault(
        "for (GLOBAL const float *p = part; p < end; p += V_DIM + 2)\n      if",
        "for (GLOBAL const float *p = part; p < end - (splits > 1 ? V_DIM + 2 : 0); p += V_DIM + 2)\n      if",
        8191,
        "rows of wide heads",
    ),
    "a window has one row more": Fault(
        "(window ? max(position + (i)-window + 1, first) : first)",
        "(window ? max(position + (i)-window + 1 - (position >= 4096), first) : first)",
        4097,
        "rows through a window",
    ),
    "the output is zero": Fault(
        "out[d] = l == 0.0f ? 0.0f : a[d] / l", "out[d] = l == 0.0f || l > 4000.0f ? 0.0f : a[d] / l", 8191
    ),
}


@pytest.fixture
def faulty(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Caches on a runtime of their own, whose kernel has the fault of this name; the sound one without a name."""
    fault = FAULTS.get(request.param)
    sound = row_attention.text

    def text(*of: Any) -> str:
        made = sound(*of)
        if fault is None:
            return made
        assert made.count(fault.was) == 1
        return made.replace(fault.was, fault.now)

    monkeypatch.setattr(row_attention, "text", text)
    runtime = FastRuntime(os.environ.get(opencl_devices.SELECT, ""))
    runtime.workers = max(2, runtime.workers)  # one alone would never split rows
    return Fast("opencl-fast", runtime, False)


def failing(caches: Any, fault: Fault) -> list[Trace]:
    """The traces that fail, of the first boundaries from where the fault begins."""
    about = description(caches.describe())
    near = [trace for b, trace in SIZES[fault.size].traces(0) if fault.begin <= b][:3]
    return [t for t in near if trial.on(t, lambda seen: Session(caches, seen), about, "visible").failed]


@pytest.mark.parametrize(("faulty", "name"), one_in(5, [(n, n) for n in FAULTS]), indirect=["faulty"])
def test_a_fault_that_begins_at_thousands_of_rows_is_found(faulty: Any, name: str) -> None:
    assert failing(faulty, FAULTS[name])


@pytest.mark.slow  # the control of the faults above, which takes half a minute
@pytest.mark.parametrize("faulty", [""], indirect=True)
def test_the_sound_kernel_passes_the_same_traces(faulty: Any) -> None:
    for fault in {f.size: f for f in FAULTS.values()}.values():
        assert failing(faulty, fault) == []
