"""The host's share of work on an NVIDIA GPU: Python a launch and a replay, over a driver that does nothing.

Needs no GPU and measures none: what a driver takes comes on top.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from tabulate import tabulate

from kvadapters.gpu.runtime import Block, Meter, Work
from kvadapters.gpu.runtimes.capture import Recorder, Replayable
from kvadapters.gpu.runtimes.cuda_launch import Kernel, Unreleased
from kvadapters.gpu.runtimes.cupy import CuPyRuntime

ARGUMENTS, LAUNCHES, ROUNDS, CALLS = 17, 128, 15, 2000
"""Arguments of a launch, as an append's; launches of a recording; rounds, and calls in each."""


def main() -> None:
    """Print microseconds of the processor: the median of the rounds, and the quartiles."""
    runtime = over_nothing()
    meter, work, recorder = runtime.meter, Work(16, 1, 8, 2), runtime._recorder
    blocks = [Block(SimpleNamespace(ptr=4096 * i), 64, meter) for i in range(4)]
    args = (*blocks, *range(ARGUMENTS - len(blocks)))

    def launched() -> None:
        runtime.launch("move16", work, *args)

    def all_launched() -> None:
        for _ in range(LAUNCHES):
            launched()

    recording = recorder.record(all_launched)
    replayed = Replayable(recorder, Unreleased(recording), lambda: None).replay
    looked_through = Replayable(recorder, recording, lambda: None).replay
    cases = {
        f"a launch of {ARGUMENTS} arguments": launched,
        f"a replay of {LAUNCHES} launches": replayed,
        "the same, after a block was released": looked_through,
    }
    rows = [
        (name, *np.quantile([_microseconds(call) for _ in range(ROUNDS)], (0.5, 0.25, 0.75)))
        for name, call in cases.items()
    ]
    print(tabulate(rows, ("Python", "us", "quartile", "quartile"), floatfmt=".2f"))


def over_nothing() -> CuPyRuntime:
    """Give the runtime with one kernel, over a driver that does nothing."""
    made = CuPyRuntime.__new__(CuPyRuntime)
    made.errors, made.meter, made._stream = (), Meter(), SimpleNamespace(ptr=2)
    made._recorder = Recorder(made.meter)
    driver = SimpleNamespace(launchKernel=lambda *_: None)
    made._kernels = {"move16": Kernel(driver, SimpleNamespace(ptr=1), "move16", 0)}
    return made


def _microseconds(call: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - began) / CALLS * 1e6


if __name__ == "__main__":
    main()
