"""The laws of RoPE: two traces each, and the numbers that both end with, which may differ by the bounds of both."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from kvconform.judge.trial import Outcome
from kvconform.oracle.follow import expected
from kvconform.oracle.reference import halved
from kvspec.geometry import Array, Config
from kvspec.operations.notation import operation
from kvspec.trace import Trace

POSITIONS = (0, 1, 2, 7, 63, 1000, 100_000, 1 << 31, -1, -5)
"""Where rows are turned to."""


def concerns(trace: Trace) -> bool:
    """Whether a trace is one side of a law of this chapter."""
    return any(op["op"] == "rotate" or op.get("rope") is not None for op in trace.ops)


def _trace(config: Config, *ops: str) -> Trace:
    return Trace("ring" if config.window else "growing", config, tuple(map(operation, ops)))


def _even(config: Config) -> Config:
    return config.changed(k_dim=config.k_dim + config.k_dim % 2)


def _rope(draw: st.DrawFn) -> str:
    base = draw(st.sampled_from(("", "", " base=500000", " base=7", " base=1")))
    return str(draw(st.sampled_from(("norm", "neox")))) + base


def _place(draw: st.DrawFn) -> tuple[int, int]:
    """Where the first row is turned to, and how far the next one is."""
    return draw(st.sampled_from(POSITIONS)), draw(st.sampled_from((1, 1, 2, 0, -3, 1 << 20)))


def pairings(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """Neighbours turned together; or halves, of rows whose elements were put there."""
    (at, stride), n = _place(draw), draw(st.integers(1, 4))
    dims = draw(st.sampled_from(("", f" dims={2 * draw(st.integers(1, config.k_dim // 2))}")))
    how = f"rotate {n} {at} stride={stride} base={draw(st.sampled_from((10000, 7)))}{dims}"
    sides = (f"{how} pairing=norm", f"{how} pairing=neox halved=1")
    left, right = (_trace(_even(config), side) for side in sides)
    return left, right


def twice(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """Turned by a, then by b; or by a + b at once."""
    (at, stride), n, by = _place(draw), draw(st.integers(1, 4)), draw(st.sampled_from(POSITIONS))
    how = f"stride={stride} pairing={_rope(draw)}"
    left, right = (_trace(_even(config), f"rotate {n} {o} {how}") for o in (f"{at} by={by}", at + by))
    return left, right


def shifted(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """Rows at the first positions; or further on, all rows before them hidden."""
    rope, m, n = _rope(draw), draw(st.integers(1, 40)), draw(st.integers(1, 4))
    before, attend = f"append {m} fill=random", f"attend {n} rope={rope}"
    hidden = "/".join(["0" * m + "1" * n] * n)
    left = _trace(_even(config), before, "rewind 0", attend)
    return left, _trace(_even(config), before, f"{attend} through causal & {hidden}")


def ring(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """A ring; or a growing cache through a mask of that window."""
    rope, sizes = _rope(draw), draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    attends = [f"attend {n} rope={rope}" for n in sizes]
    through = f" through causal & window={config.window}"
    left = _trace(_even(config), *attends)
    return left, _trace(_even(config).changed(window=None), *(a + through for a in attends))


def block(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """Several rows attended with at once; or one by one."""
    rope, n = _rope(draw), draw(st.integers(2, 5))
    before = [f"attend {draw(st.integers(1, 4))} rope={rope}" for _ in range(draw(st.integers(0, 2)))]
    left = _trace(_even(config), *before, f"attend {n} rope={rope}")
    return left, _trace(_even(config), *before, *[f"attend 1 rope={rope}"] * n)


def differ(sides: tuple[Trace, Trace], seen: tuple[Outcome, Outcome]) -> str:
    """How the ends differ by more than both may be off; empty if they do not."""
    for side, outcome in zip(sides, seen, strict=True):
        if len(outcome.steps) < len(side.ops):
            return f"it failed at step {len(outcome.steps)}"
    n, halves = sides[0].ops[-1]["n"], any(_last(side, "halved") for side in sides)
    (a, may), (b, might) = (_end(side, seen, n, halves) for side, seen in zip(sides, seen, strict=True))
    if a.shape != b.shape:
        return f"the left side ends with {a.shape} numbers, the right side with {b.shape}"
    wrong = np.argwhere(~(np.abs(a - b) <= may + might))
    if not len(wrong):
        return ""
    at = tuple(wrong[0])
    return f"at {[int(i) for i in at]} the left side ends with {a[at]:.9g}, the right side with {b[at]:.9g}"


def _last(side: Trace, name: str) -> Any:
    """An argument of the last operation of a side."""
    return side.ops[-1].get(name)


def _end(side: Trace, seen: Outcome, n: int, halves: bool) -> tuple[Array, Array]:
    """The numbers of the last n rows or queries in f64, and how far they may be off."""
    steps = [(got.arrays, want) for (_, got), want in zip(seen.steps, expected(side), strict=True)]
    if side.ops[-1]["op"] == "rotate":
        arrays, want = steps[-1]
        both = _wide(arrays["rotated"]), want.rotated.bound if want.rotated else np.zeros(())
        move = halves and not _last(side, "halved")
        found, bound = (halved(a, _last(side, "dims")) if move else a for a in both)
        return found, bound
    outputs = [(_wide(arrays["output"]), want.outputs.bound) for arrays, want in steps if want.outputs]
    found, bound = (np.concatenate(part, axis=2)[:, :, -n:] for part in zip(*outputs, strict=True))
    return found, bound


def _wide(array: Array | None) -> Array:
    return np.empty(0) if array is None else array.astype(np.float64)
