"""Scalings of RoPE in the list model, in f64; and how much less exact they may make an angle. See ROPE."""

from __future__ import annotations

import math

import numpy as np

from kvspec.contract.attention import Rope
from kvspec.errors import Refused
from kvspec.geometry import Array
from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN, numbers

CLAUSES = {Linear: "ROPE-31", NTK: "ROPE-32", Llama3: "ROPE-33", YaRN: "ROPE-34", LongRoPE: "ROPE-36"}
"""What each scaling does to frequencies."""


def clause(scaling: Scaling | None) -> str:
    """The clause on the frequencies of a scaling, or of none."""
    if scaling is None:
        return "ROPE-3"
    return "ROPE-42" if isinstance(scaling, YaRN) and scaling.exact else CLAUSES[type(scaling)]


def demand(rope: Rope, dims: int) -> None:
    """Refuse a scaling of senseless numbers, or of other pairs."""
    scaling = rope.scaling
    if scaling is None:
        return
    told = numbers(scaling)
    sensible = all(0 < x < math.inf for x in told) and told[0] >= 1  # NaN is not
    if isinstance(scaling, NTK):
        sensible = sensible and dims != 2
    if isinstance(scaling, Llama3):
        sensible = sensible and scaling.high_freq_factor > scaling.low_freq_factor
    if isinstance(scaling, LongRoPE):
        lists = len(scaling.short), len(scaling.long)
        sensible = sensible and scaling.original >= 2 and lists == (dims // 2, dims // 2)
    if isinstance(scaling, YaRN):
        sensible = sensible and rope.base >= 2 and scaling.beta_fast > scaling.beta_slow
        sensible = sensible and np.less_equal(*ramp(scaling, dims, rope.base))
    if not sensible:
        raise Refused("ROPE-38", "a scaling that gives no sensible frequencies")


def axes(rope: Rope, dims: int) -> Array:
    """Which of a row's three positions turns each pair, `[dims / 2]`: 0 time, 1 height, 2 width."""
    pairs = np.arange(dims // 2)
    time, height, width, interleaved = rope.sections or (0, 0, 0, False)
    if interleaved:
        return np.where(pairs < 3 * np.array((0, height, width))[pairs % 3], pairs % 3, 0)
    return np.searchsorted(np.array((time, time + height)), pairs, side="right")


def base_of(rope: Rope, dims: int) -> float:
    """The base that a pair's power is taken of."""
    raised = rope.scaling.alpha ** (dims / (dims - 2)) if isinstance(rope.scaling, NTK) else 1.0
    return rope.base * raised


def frequencies(rope: Rope, dims: int, positions: Array, long: str = "row") -> Array:
    """Angles `[n, dims / 2]` from one position to the next, of rows at positions `[n]`, or of pairs at positions
    `[n, dims / 2]`; `long` as the dialect."""
    plain: Array = base_of(rope, dims) ** (-np.arange(0, dims, 2) / dims)
    multiples: Array = _multiples(rope, dims, plain, positions.reshape(len(positions), -1), long)
    return np.asarray(plain * np.broadcast_to(multiples, (len(positions), dims // 2)))


def _multiples(rope: Rope, dims: int, plain: Array, positions: Array, long: str) -> Array:
    """What frequencies are multiplied by, `[n or 1, dims / 2 or 1]`."""
    match rope.scaling:
        case Linear(factor):
            return np.array([[1 / factor]])
        case LongRoPE(_, _, short, far):
            beyond = _beyond(rope.scaling, positions, long)
            return np.where(beyond, 1 / np.array(far), 1 / np.array(short))
        case Llama3(factor, low, high, original):
            turns = original * plain / (2 * np.pi)
            return _mean(np.clip((turns - low) / (high - low), 0, 1), factor)
        case YaRN(factor):
            first, last = ramp(rope.scaling, dims, rope.base)
            pairs = np.arange(dims // 2)
            divided = np.where(pairs > first, 1.0, 0.0) if first == last else (pairs - first) / (last - first)
            return _mean(1 - np.clip(divided, 0, 1), factor)
    return np.ones((1, 1))


def _mean(kept: Array, factor: float) -> Array:
    return (kept + (1 - kept) / factor)[None]


def _beyond(scaling: LongRoPE, positions: Array, long: str) -> Array:
    """Whether each position is turned by the long list."""
    if long == "always":
        return np.full(positions.shape, scaling.factor > 1)
    seen = np.full_like(positions, positions.max(initial=0)) if long == "call" else positions
    return np.asarray(seen >= scaling.original)


def ramp(scaling: YaRN, dims: int, base: int) -> tuple[float, float]:
    """The last pair that is kept, and the first that is divided whole; or, between pairs, where the ramp ends."""
    fast, slow = (
        dims * math.log(scaling.original / (2 * math.pi * beta)) / (2 * math.log(base))
        for beta in (scaling.beta_fast, scaling.beta_slow)
    )
    if not scaling.exact:
        fast, slow = math.floor(fast), math.ceil(slow)
    return max(fast, 0), min(slow, dims - 1)


def factor(scaling: Scaling | None) -> float:
    """What cosines and sines are multiplied by."""
    if not isinstance(scaling, YaRN | LongRoPE):
        return 1.0
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if isinstance(scaling, YaRN):
        return 1 + math.log(scaling.factor) / 10
    return math.sqrt(1 + math.log(scaling.factor) / math.log(scaling.original))


def spread(rope: Rope, dims: int) -> float:
    """How many times as far an angle may be off as one without a scaling, relatively: ROPE derives it."""
    match rope.scaling:
        case None:
            return 1.0
        case NTK():
            return 4.0
        case YaRN(factor):
            first, last = ramp(rope.scaling, dims, rope.base)
            steep = dims / (last - first) if rope.scaling.exact and first < last else 0
            return 2 + factor * (1 + steep) / 4
        case Llama3(factor, low, high):
            return 2 + ((factor - 1) * low + high) / (high - low)
    return 2.0
