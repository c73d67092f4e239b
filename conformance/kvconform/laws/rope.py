"""The laws of RoPE. Two ends are compared by numbers, which may differ by the bounds of both sides."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kvconform.generate.strategies.rope import sections
from kvconform.judge.trial_result import TrialResult
from kvconform.laws import caches
from kvconform.laws.law import Results, Sides, of_ends, register
from kvconform.oracle.expected import Expected
from kvconform.oracle.follow import expected
from kvconform.oracle.trace_inputs import halved
from kvspec.geometry import Array, Config
from kvspec.operations.arguments import PAIRINGS
from kvspec.operations.table import caches_with
from kvspec.trace import Trace

POSITIONS = (0, 1, 2, 7, 63, 1000, 100_000, 1 << 31, -1, -5)
"""Positions that rows are rotated to."""


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the ends differ by more than both may be off; empty if they do not."""
    n, halves = sides.left.ops[-1]["n"], any(_last(side, "halved") for side in sides)
    (a, may), (b, might) = (_end(side, result, n, halves) for side, result in zip(sides, results, strict=True))
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


def _end(side: Trace, result: TrialResult, n: int, halves: bool) -> tuple[Array, Array]:
    """The numbers of the last n rows or queries in f64, and how far they may be off."""
    steps = [(got.arrays, want) for (_, got), want in zip(result.steps, _wanted(side, result), strict=True)]
    if side.ops[-1]["op"] == "rotate":
        arrays, want = steps[-1]
        both = _wide(arrays["rotated"]), want.rotated.bound if want.rotated else np.zeros(())
        move = halves and not _last(side, "halved")
        numbers, bound = (halved(a, _last(side, "dims")) if move else a for a in both)
        return numbers, bound
    outputs = [(_wide(arrays["output"]), want.outputs.bound) for arrays, want in steps if want.outputs]
    numbers, bound = (np.concatenate(part, axis=2)[:, :, -n:] for part in zip(*outputs, strict=True))
    return numbers, bound


def _wanted(side: Trace, result: TrialResult) -> list[Expected]:
    """What the list model expects of each step: with what the adapter declares, where that was the oracle."""
    judged = [want for want, _ in result.steps if isinstance(want, Expected)]
    return judged if len(judged) == len(result.steps) else expected(side)


def _wide(array: Array | None) -> Array:
    return np.empty(0) if array is None else array.astype(np.float64)


law = partial(register, compare=difference)


def _trace(config: Config, *ops: str) -> Trace:
    even = config.changed(k_dim=config.k_dim + config.k_dim % 2)
    return caches.plain(even, *ops)


def _rope(draw: st.DrawFn) -> str:
    base = draw(st.sampled_from(("", "", " base=500000", " base=7", " base=1")))
    return str(draw(st.sampled_from(("norm", "neox")))) + base


def _position(draw: st.DrawFn) -> tuple[int, int]:
    """The position of the first row, and how far the next one is."""
    return draw(st.sampled_from(POSITIONS)), draw(st.sampled_from((1, 1, 2, 0, -3, 1 << 20)))


@law("ROPE-24", needs=("rope",), kinds=caches_with("rotate"))
def pairings(draw: st.DrawFn, config: Config) -> Sides:
    """Rotate neighbours; or rotate halves, of rows with the same elements put into halves."""
    (at, stride), n = _position(draw), draw(st.integers(1, 4))
    dims = draw(st.sampled_from(("", f" dims={2 * draw(st.integers(1, config.k_dim // 2))}")))
    how = f"rotate {n} {at} stride={stride} base={draw(st.sampled_from((10000, 7)))}{dims}"
    return Sides(_trace(config, f"{how} pairing=norm"), _trace(config, f"{how} pairing=neox halved=1"))


@law("ROPE-25", needs=("rope",), kinds=caches_with("rotate"))
def twice(draw: st.DrawFn, config: Config) -> Sides:
    """Rotated by a, then by b; or by a + b at once."""
    (at, stride), n, by = _position(draw), draw(st.integers(1, 4)), draw(st.sampled_from(POSITIONS))
    how = f"stride={stride} pairing={_rope(draw)}"
    left, right = (_trace(config, f"rotate {n} {position} {how}") for position in (f"{at} by={by}", at + by))
    return Sides(left, right)


@law("ROPE-26", needs=("growing", "attention", "rope"))
def shifted(draw: st.DrawFn, config: Config) -> Sides:
    """Rows at the first positions; or further on, all rows before them hidden."""
    rope, m, n = _rope(draw), draw(st.integers(1, 40)), draw(st.integers(1, 4))
    before, attend = f"append {m} fill=random", f"attend {n} rope={rope}"
    hidden = "/".join(["0" * m + "1" * n] * n)
    left = _trace(config, before, "rewind 0", attend)
    return Sides(left, _trace(config, before, f"{attend} through causal & {hidden}"))


@law("ROPE-27", needs=("ring", "growing", "attention", "rope"))
def ring(draw: st.DrawFn, config: Config) -> Sides:
    """A ring; or a growing cache through a mask of that window."""
    rope, sizes = _rope(draw), draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    attends = [f"attend {n} rope={rope}" for n in sizes]
    through = f" through causal & window={config.window}"
    return Sides(_trace(config, *attends), _trace(config.changed(window=None), *(a + through for a in attends)))


@law("ROPE-28", needs=("growing", "attention", "rope"))
def block(draw: st.DrawFn, config: Config) -> Sides:
    """Several rows attended with at once; or one by one."""
    rope, n = _rope(draw), draw(st.integers(2, 5))
    before = [f"attend {draw(st.integers(1, 4))} rope={rope}" for _ in range(draw(st.integers(0, 2)))]
    one, each = [f"attend {n} rope={rope}"], [f"attend 1 rope={rope}"] * n
    return Sides(_trace(config, *before, *one), _trace(config, *before, *each))


@law("ROPE-46", needs=("rope",), kinds=caches_with("rotate"))
def of_text(draw: st.DrawFn, config: Config) -> Sides:
    """Rows of three equal positions, in sections; or of one position."""
    (at, stride), n, pairs = _position(draw), draw(st.integers(1, 4)), (config.k_dim + config.k_dim % 2) // 2
    how = f"rotate {n} {at} stride={stride} pairing={_rope(draw)}"
    return Sides(_trace(config, f"{how}{draw(sections(pairs))}"), _trace(config, how))


@law("ROPE-41", needs=("rope",), kinds=caches_with("rotate"))
def interpolated(draw: st.DrawFn, config: Config) -> Sides:
    """Rows further apart by a factor, which divides frequencies; or where they are. Or a factor of 1, or none."""
    (at, stride), n, pairing = (
        _position(draw),
        draw(st.integers(1, 4)),
        f"pairing={draw(st.sampled_from(PAIRINGS))}",
    )
    factor = draw(st.sampled_from((1, 2, 4, 7, 32)))
    ones = ("linear:1", "llama3:1:1:4:64", "yarn:1:8192", *(("ntk:1",) if config.k_dim > 2 else ()))
    scaling = f"linear:{factor}" if factor > 1 else draw(st.sampled_from(ones))
    apart = f"rotate {n} {factor * at} stride={factor * stride} {pairing} scaling={scaling}"
    return Sides(_trace(config, apart), _trace(config, f"rotate {n} {at} stride={stride} {pairing}"))
