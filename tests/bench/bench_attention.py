"""Decode attention of the OpenCL kernel for CPU devices, against torch and numpy in paired rounds.

python tests/bench/bench_attention.py [rounds, default 15] [dtypes, default f32,f16]

Batch 1, 32 query heads over 8 kv heads of 128 elements, and 8 over 2. In each round all sides attend to the same
rows one after another, in a changing order, and a ratio compares two times of one round; "at best" are the fastest
single calls, which other work disturbed least. The caches in rotation are so large that rows come from memory
(`ROTATION`). torch has all processors and is measured in two forms: with `enable_gqa`, and with the query heads of
a group folded into queries; the faster one counts. Which device is used: see KVCONFORM_OPENCL.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from tabulate import tabulate

from kvgpu.caches.attention import Positions, Runs
from kvgpu.memory.device_arrays import fetched, placed
from kvgpu.memory.layout import Place
from kvgpu.runtimes import opencl_devices
from kvgpu.runtimes.fast.attention import Call as FastCall
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.row_attention import RowAttention
from kvgpu.runtimes.opencl import OpenCLRuntime, shared
from kvspec.geometry import DTYPES, Array

DIM = 128
MODELS = ((32, 8), (8, 2))
TOKENS = tuple(1024 << i for i in range(6))
ROTATION = 256 << 20
"""Least bytes of the caches in rotation: more than a last-level cache."""
TURN = 0.02
"""Least seconds of one side in a round."""
REST = 0.005
"""Seconds between two sides, so that spinning threads go to sleep."""

TORCH = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

Call = Callable[[int], Any]
"""Attend to the cache of that number."""


class Case(NamedTuple):
    """One shape."""

    heads: int
    kv_heads: int
    tokens: int
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are read."""
        return 2 * self.kv_heads * self.tokens * DIM * DTYPES[self.dtype].itemsize

    @property
    def caches(self) -> int:
        """Count the caches in rotation."""
        return max(2, -(-ROTATION // self.nbytes))

    def rows(self) -> Array:
        """Keys and values, `[2, kv_heads, tokens, dim]`."""
        random = np.random.default_rng(self.tokens)
        return random.standard_normal((2, self.kv_heads, self.tokens, DIM), np.float32).astype(DTYPES[self.dtype])

    def queries(self) -> Array:
        """f32, `[1, heads, 1, dim]`."""
        return np.random.default_rng(1).standard_normal((1, self.heads, 1, DIM), np.float32)


def ours(runtime: OpenCLRuntime, case: Case, rows: Array) -> tuple[Call, Callable[[], Array]]:
    """Launch once or twice and wait; give the result."""
    attention = RowAttention(runtime, Geometry(case.dtype, DIM, DIM, case.heads, case.kv_heads))
    held = [placed(runtime, *rows) for _ in range(case.caches)]
    places = [Place(k.block, v.block, k.at, v.at, case.tokens) for k, v in held]
    queries, out = placed(runtime, case.queries(), case.queries())
    where = Positions(0, case.tokens)

    def call(i: int) -> None:
        attention.attend(FastCall(queries, Runs(places[i], case.kv_heads * case.tokens), where, out))
        runtime.synchronise()

    return call, lambda: fetched(out)


def peers(case: Case, rows: Array) -> dict[str, Call]:
    """Give torch in two forms, and numpy; all three share one set of caches."""
    base = torch.from_numpy(rows.view(np.uint8)).view(TORCH[case.dtype])[:, None]
    held = [base.clone() for _ in range(case.caches)]
    arrays = [h[:, 0].view(torch.uint8).numpy().view(DTYPES[case.dtype]) for h in held]
    query = torch.from_numpy(case.queries()).to(TORCH[case.dtype])
    folded = query.view(1, case.kv_heads, case.heads // case.kv_heads, DIM)
    scaled = case.queries().reshape(folded.shape[1:]) / np.float32(math.sqrt(DIM))
    attend = torch.nn.functional.scaled_dot_product_attention
    return {
        "torch gqa": lambda i: attend(query, *held[i], enable_gqa=True),
        "torch folded": lambda i: attend(folded, *held[i]),
        "numpy": lambda i: by_numpy(scaled, *arrays[i]),
    }


def by_numpy(queries: Array, keys: Array, values: Array) -> Array:
    """Plainly: `[kv_heads, group, dim]` over `[kv_heads, tokens, dim]`."""
    scores = queries @ keys.astype(np.float32, copy=False).transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    found: Array = weights @ values.astype(np.float32, copy=False) / weights.sum(-1, keepdims=True)
    return found


def demand_same(case: Case, result: Callable[[], Array], sides: dict[str, Call]) -> None:
    """Check that all results agree, within the dtype of torch's output."""
    for name, call in sides.items():
        found = call(0)
        if found is not None:
            theirs = np.asarray(found if isinstance(found, np.ndarray) else found.float()).ravel()
            off = float(np.abs(result().ravel() - theirs).max())
            assert off < {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}[case.dtype], (name, off)


class Times(NamedTuple):
    """Times of one side: seconds of a call in each round, and the fastest call of all."""

    rounds: list[float]
    best: list[float]


def measured(case: Case, sides: dict[str, Call], rounds: int) -> dict[str, Times]:
    """Measure all sides, one after another in each round."""
    often = {name: max(1, int(TURN / once(call))) for name, call in sides.items()}
    found = {name: Times([], [math.inf]) for name in sides}
    turn = 0
    for r in range(rounds):
        names = list(sides)
        for name in names[r % len(names) :] + names[: r % len(names)]:
            time.sleep(REST)
            taken = [timed(sides[name], (turn + i) % case.caches) for i in range(often[name])]
            turn += often[name]
            found[name].rounds.append(statistics.fmean(taken))
            found[name].best[0] = min(found[name].best[0], *taken)
    return found


def once(call: Call) -> float:
    """Estimate the seconds of a call, once everything is compiled."""
    call(0)
    return timed(call, 1)


def timed(call: Call, i: int) -> float:
    """Time this call."""
    begin = time.perf_counter()
    call(i)
    return time.perf_counter() - begin


def line(case: Case, found: dict[str, Times]) -> list[Any]:
    """Write a line of the table."""
    speed = {name: case.nbytes / statistics.median(times.rounds) / 1e9 for name, times in found.items()}
    form = max((name for name in found if name.startswith("torch")), key=speed.__getitem__)
    mine, theirs = found["ours"], found[form]
    low, middle, high = statistics.quantiles([b / a for a, b in zip(mine.rounds, theirs.rounds, strict=True)], n=4)
    peak = [case.nbytes / times.best[0] / 1e9 for times in (mine, theirs)]
    shape = [f"{case.heads} over {case.kv_heads}", case.tokens, case.dtype]
    speeds = [f"{speed[name]:.1f}" for name in ("ours", form, "numpy")] + [form.removeprefix("torch ")]
    ratios = [f"{middle:.2f}", f"{low:.2f} to {high:.2f}", *(f"{p:.1f}" for p in peak), f"{peak[0] / peak[1]:.2f}"]
    return [*shape, *speeds, *ratios]


HEADERS = ["heads", "tokens", "dtype", "ours", "torch", "numpy", "torch's form", "torch / ours", "quartiles"]
HEADERS += ["at best: ours", "torch", "torch / ours"]


def main(rounds: int, dtypes: list[str]) -> None:
    runtime = shared(os.environ.get(opencl_devices.SELECT, ""))
    print(runtime.describe()["device"])
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; {rounds} rounds; GB/s of rows read")
    lines = []
    for case in (Case(*model, tokens, dtype) for dtype in dtypes for model in MODELS for tokens in TOKENS):
        rows = case.rows()
        call, result = ours(runtime, case, rows)
        sides = {"ours": call, **peers(case, rows)}
        demand_same(case, result, sides)
        lines.append(line(case, measured(case, sides, rounds)))
        print(tabulate(lines[-1:], tablefmt="plain", disable_numparse=True), file=sys.stderr, flush=True)
    print(tabulate(lines, HEADERS, disable_numparse=True))


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 15,
        sys.argv[2].split(",") if len(sys.argv) > 2 else ["f32", "f16"],
    )
