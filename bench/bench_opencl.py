"""Operations a second through a session, of the OpenCL adapter and of the reference in the same run.

    python bench/bench_opencl.py [seconds for each, default 2]

Small caches (2 heads, 8 and 6 dims, windows up to 8), with state, history and mask observed at every step, as
the harness drives an adapter. Which device is used: see KVCONFORM_OPENCL.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from kvadapters.gpu.opencl import OpenCL
from kvadapters.reference import Reference
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Config
from kvspec.session import NOTHING, Given, Session

Op = dict[str, Any]
ROUNDS = 5


def rows(config: Config, n: int) -> Pair:
    random = np.random.default_rng(n)
    keys, values = (random.standard_normal(config.shape(kind, n)) for kind in ("k", "v"))
    return Pair(keys.astype(DTYPES[config.dtype]), values.astype(DTYPES[config.dtype]))


def workload() -> Iterator[tuple[str, Config, list[Op]]]:
    """Caches to open, and what to do with each; some of it is refused."""
    appends: list[Op] = [{"op": "append", "n": n} for n in (3, 1, 1, 2, 1, 1, 1, 5, 1, 1)]
    saves: list[Op] = [{"op": "snapshot", "name": "s"}, {"op": "append", "n": 1}]
    saves.append({"op": "restore", "name": "s", "to": 9})
    rest: list[Op] = [{"op": "view"}, {"op": "mask", "parts": ["causal", {"window": 2}]}, {"op": "rewind", "to": 6}]
    for window in (1, 3, 8):
        yield "ring", Config(window=window, step=4), [*appends, *saves, *rest, *appends]
    yield "growing", Config(step=4), [*appends, *saves, *rest, *appends]
    yield "growing", Config(), [*appends, *saves, *rest, *appends]


def steps(adapter: Any) -> Iterator[None]:
    """The workload, over and over; one item a step."""
    for profile, config, todo in itertools.cycle(workload()):
        session = Session(adapter)
        session.begin(profile, config)
        for op in todo:
            step = session.do(op, Given(rows(config, op["n"])) if op["op"] == "append" else NOTHING)
            assert step.result in ("ok", "refused"), step
            yield


def rate(adapter: Any, seconds: float) -> float:
    begin, done = time.perf_counter(), 0
    for _ in steps(adapter):
        done += 1
        if time.perf_counter() - begin > seconds:
            break
    return done / (time.perf_counter() - begin)


def main(seconds: float) -> None:
    opencl, reference = OpenCL(), Reference()
    print(opencl.describe()["device"])
    rate(opencl, 1.0)
    found = [(rate(opencl, seconds / ROUNDS), rate(reference, seconds / ROUNDS)) for _ in range(ROUNDS)]
    for name, rates in zip(("opencl", "reference"), zip(*found, strict=True), strict=True):
        print(f"{name:10} {statistics.median(rates):8,.0f} operations/s ({min(rates):,.0f} to {max(rates):,.0f})")
    ratios = [a / b for a, b in found]
    print(f"{'ratio':10} {statistics.median(ratios):8.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
