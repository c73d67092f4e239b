"""ROPE by complex numbers: a pair of elements is one number, and turning it is a product with M exp(i t).

Written from the text of the chapter alone; a scaling is a number for each pair, by which its angle is divided.
Attention is that of a textbook, in float64, over turned keys.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from support.engines.foreign import attention
from support.engines.foreign.demands import want


def _kept(x: float, low: float, high: float) -> float:
    """How much of a frequency is kept at x, between `low`, where none is, and `high`."""
    if low == high:
        return float(x >= high)
    return min(1.0, max(0.0, (x - low) / (high - low)))


def _ends(scaling: Any, dims: int, base: int) -> tuple[float, float]:
    """Where YaRN's ramp begins and ends."""
    pair = dims / (2 * math.log(base))
    fast, slow = (
        pair * math.log(scaling.original / (math.tau * n)) for n in (scaling.beta_fast, scaling.beta_slow)
    )
    if scaling.exact:
        return max(0, fast), min(dims - 1, slow)
    return max(0, math.floor(fast)), min(dims - 1, math.ceil(slow))


def _demand(scaling: Any, dims: int, base: int) -> None:
    """Refuse what gives no frequencies."""
    for name, told in vars(scaling).items():
        for number in told if isinstance(told, tuple) else (told,):
            if isinstance(number, bool | None):
                continue
            want(math.isfinite(number) and number > 0, f"{name} {number}")
            want(name not in ("factor", "alpha") or number >= 1, f"{name} {number}")
    match type(scaling).__name__:
        case "NTK":
            want(dims > 2, f"NTK of {dims} elements")
        case "Llama3":
            want(scaling.low_freq_factor < scaling.high_freq_factor, "bounds that are not in order")
        case "LongRoPE":
            want(scaling.original > 1, "an original length of 1")
            want(all(len(x) == dims // 2 for x in (scaling.short, scaling.long)), "lists of another length")
        case "YaRN":
            want(base > 1 and scaling.beta_slow < scaling.beta_fast, "bounds that are not in order")
            first, last = _ends(scaling, dims, base)
            want(first <= last, f"a ramp from {first} to {last}")


def _divisor(scaling: Any, pair: int, dims: int, base: int, position: int) -> float:
    """What the angle of a pair is divided by."""
    match type(scaling).__name__:
        case "Linear":
            return float(scaling.factor)
        case "NTK":
            return float(scaling.alpha ** (2 * pair / (dims - 2)))
        case "LongRoPE":
            return float((scaling.short if position < scaling.original else scaling.long)[pair])
        case "Llama3":
            turns = scaling.original * base ** (-2 * pair / dims) / math.tau
            kept = _kept(turns, scaling.low_freq_factor, scaling.high_freq_factor)
        case _:
            first, last = _ends(scaling, dims, base)
            kept = _kept(-pair, -last, -first)
    return float(scaling.factor / (1 + kept * (scaling.factor - 1)))


def _loudness(scaling: Any) -> float:
    """The attention factor."""
    if type(scaling).__name__ not in ("YaRN", "LongRoPE"):
        return 1.0
    if scaling.attention_factor is not None:
        return float(scaling.attention_factor)
    log = math.log(scaling.factor)
    return 1 + log / 10 if type(scaling).__name__ == "YaRN" else math.sqrt(1 + log / math.log(scaling.original))


def _divisors(scaling: Any, dims: int, base: int, positions: Any) -> Any:
    """What angles are divided by, `[n, pairs]`."""
    if scaling is None:
        return np.ones((1, dims // 2))
    _demand(scaling, dims, base)
    return np.array([[_divisor(scaling, i, dims, base, int(p)) for i in range(dims // 2)] for p in positions])


def _angles(rope: Any, dims: int, positions: Any) -> Any:
    """Positions, divided for each pair as its angle is, `[n, pairs]`."""
    divided = np.asarray(positions, np.float64)[:, None] / _divisors(rope.scaling, dims, rope.base, positions)
    return np.broadcast_to(divided, (len(positions), dims // 2))


def _order(sections: Any, pairs: int) -> list[int]:
    """Which position turns each pair: 0 the time, 1 the height, 2 the width."""
    left = [sections.time, sections.height, sections.width]
    want(min(left) >= 0 and sum(left) == pairs, f"{sections} of {pairs} pairs")
    if not sections.interleaved:
        return [axis for axis in range(3) for _ in range(left[axis])]
    order = []
    for pair in range(pairs):
        axis = pair % 3 if left[pair % 3] else 0
        want(left[axis] > 0, f"{sections} of {pairs} pairs")
        left[axis] -= 1
        order.append(axis)
    return order


def turned(rows: Any, positions: Any, rope: Any) -> Any:
    """Rows `[..., n, dim]`, each turned by its position, or by three."""
    dims = rows.shape[-1] if rope.dims is None else rope.dims
    want(dims % 2 == 0 and 2 <= dims <= rows.shape[-1] and rope.base >= 1, f"{dims} elements, base {rope.base}")
    real, imaginary = (
        (slice(0, dims, 2), slice(1, dims, 2))
        if rope.pairing == "norm"
        else (slice(0, dims // 2), slice(dims // 2, dims))
    )
    frequencies = rope.base ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
    if rope.sections is None:
        angles = _angles(rope, dims, positions) * frequencies
    else:
        order = _order(rope.sections, dims // 2)
        three = [_angles(rope, dims, each) for each in positions]
        angles = np.stack([three[axis][:, i] for i, axis in enumerate(order)], 1) * frequencies
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        points = np.empty(wide[..., real].shape, np.complex128)
        points.real, points.imag = wide[..., real], wide[..., imaginary]
        points = points * (_loudness(rope.scaling) * np.exp(1j * angles))
        out = rows.copy()
        out[..., real], out[..., imaginary] = points.real.astype(rows.dtype), points.imag.astype(rows.dtype)
    return out


class Cache(attention.Cache):
    """A cache whose attends turn queries and keys first."""

    def attend(self, queries: Any, keys: Any, values: Any, how: Any, out: Any = None, of: Any = None) -> Any:
        """Turn, append and attend."""
        if how.rope is not None:
            first = self.lengths().offset
            keys, queries = (turned(a, first + np.arange(a.shape[2]), how.rope) for a in (keys, queries))
        return super().attend(queries, keys, values, how, out, of)


class Complex(attention.Float64):
    """The adapter."""

    CACHE = Cache

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        told = super().describe()
        return {**told, "name": "complex-numbers", "chapters": {**told["chapters"], "rope": "visible"}}

    def rotate(self, rows: Any, positions: Any, rope: Any) -> Any:
        """Turn rows that are handed in."""
        want(rows.ndim == 4, f"rows are {rows.shape}")
        if rows.size == 0:
            return rows.copy()
        shape = rows.shape[2:3] if rope.sections is None else (3, rows.shape[2])
        want(positions.shape == shape, f"{rows.shape[2]} rows, positions {positions.shape}")
        return turned(rows, positions, rope)
