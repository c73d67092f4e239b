"""Engines whose RoPE has angles in f32, in the ways that engines compute them; and some that are worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from kvadapters.reference import Reference
from kvref.abilities.rope import pairs
from kvspec.contract import Rope
from kvspec.errors import Refused
from kvspec.geometry import Array
from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN

F32 = np.float32
Frequencies = Callable[[float, int], Array]


def by_power(base: float, dims: int) -> Array:
    """1 over a power, as realizar."""
    return F32(1) / F32(base) ** (np.arange(0, dims, 2, F32) / F32(dims))


def by_exponential(base: float, dims: int) -> Array:
    return np.exp(-np.log(F32(base)) * np.arange(0, dims, 2, F32) / F32(dims))


def by_running_product(base: float, dims: int) -> Array:
    """Each from the one before, as llama.cpp."""
    step = F32(base) ** (F32(-2) / F32(dims))
    return np.cumprod(np.array([1, *[step] * (dims // 2 - 1)], F32), dtype=F32)


def scaled(rope: Rope, dims: int, frequencies: Frequencies, positions: Array) -> Array:
    """Frequencies `[n, pairs]` under a scaling, all in f32, as transformers computes them."""
    scaling, base = rope.scaling, float(rope.base)
    if isinstance(scaling, NTK):
        base *= scaling.alpha ** (dims / (dims - 2))
    plain = frequencies(base, dims)
    match scaling:
        case Linear(factor):
            made = plain / F32(factor)
        case Llama3():
            made = _by_turns(plain, scaling)
        case YaRN():
            made = _by_ramp(plain, scaling, dims, base)
        case LongRoPE():
            short, long = (F32(1) / (np.array(x, F32) / plain) for x in (scaling.short, scaling.long))
            return np.where((positions >= scaling.original)[:, None], long, short)
        case _:
            made = plain
    return made[None]


def _mean(plain: Array, kept: Array, factor: float) -> Array:
    return (F32(1) - kept) * plain / F32(factor) + kept * plain


def _by_turns(plain: Array, scaling: Llama3) -> Array:
    turns = F32(scaling.original) / (F32(2 * np.pi) / plain)
    kept = (turns - F32(scaling.low_freq_factor)) / F32(scaling.high_freq_factor - scaling.low_freq_factor)
    return _mean(plain, np.clip(kept, F32(0), F32(1)), scaling.factor)


def _by_ramp(plain: Array, scaling: YaRN, dims: int, base: float) -> Array:
    low, high = (
        dims * np.log(scaling.original / (beta * 2 * np.pi)) / (2 * np.log(base))
        for beta in (scaling.beta_fast, scaling.beta_slow)
    )
    if not scaling.exact:
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, dims - 1)
    ramp = (np.arange(dims // 2, dtype=F32) - F32(low)) / F32(max(high - low, 0.001))
    return _mean(plain, F32(1) - np.clip(ramp, F32(0), F32(1)), scaling.factor)


def attention_factor(scaling: Scaling | None) -> float:
    """What cosines and sines are multiplied by."""
    if not isinstance(scaling, YaRN | LongRoPE):
        return 1.0
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    log = float(np.log(scaling.factor))
    return 0.1 * log + 1 if isinstance(scaling, YaRN) else float(np.sqrt(1 + log / np.log(scaling.original)))


def angles_of_16_bits(frequencies: Array) -> Array:
    return frequencies.astype(ml_dtypes.bfloat16).astype(F32)


class Turning(Reference):
    """The reference, with another rotation; it declares angles in f32, or nothing."""

    frequencies: Frequencies = staticmethod(by_power)
    declared = True

    def describe(self) -> dict[str, Any]:
        said = super().describe()
        rope = {"level": "visible", **({"angles": "f32"} if self.declared else {})}
        return {**said, "chapters": {**said["chapters"], "rope": rope}}

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        made = super().rotate(rows, positions, rope)
        if rows.size == 0:
            return made
        dims = rope.dims or rows.shape[-1]
        first, second = pairs(rope.pairing, dims)
        with np.errstate(all="ignore"):
            angle = self.angle(rope, dims, positions)
            m = F32(attention_factor(rope.scaling))
            c, s = np.cos(angle) * m, np.sin(angle) * m
            wide = np.asarray(rows).astype(F32)
            x0, x1 = wide[..., first], wide[..., second]
            turned = np.asarray(made)
            turned[..., first], turned[..., second] = x0 * c - x1 * s, x0 * s + x1 * c
        still = np.atleast_2d(positions == 0).all(0) & (m == 1)
        turned[:, :, still] = np.asarray(rows)[:, :, still]
        return made

    def angle(self, rope: Rope, dims: int, positions: Array) -> Array:
        """Angles `[n, pairs]`; of three positions, as transformers splits and joins them."""
        three = [
            each.astype(F32)[:, None] * scaled(rope, dims, type(self).frequencies, each)
            for each in np.atleast_2d(positions)
        ]
        if rope.sections is None:
            return three[0]
        made, (_, height, width, interleaved) = three[0].copy(), rope.sections
        if interleaved:
            for axis, number in ((1, height), (2, width)):
                made[:, axis : 3 * number : 3] = three[axis][:, axis : 3 * number : 3]
            return made
        ends = np.cumsum(rope.sections[:3])[:-1]
        return np.concatenate([np.split(part, ends, 1)[axis] for axis, part in enumerate(three)], 1)


class Exponential(Turning):
    frequencies = staticmethod(by_exponential)


class RunningProduct(Turning):
    frequencies = staticmethod(by_running_product)


class Undeclared(Turning):
    declared = False


class Of16Bits(Turning):
    """Declares f32, and rounds its frequencies to bf16."""

    frequencies = staticmethod(lambda base, dims: angles_of_16_bits(by_power(base, dims)))


class HalfAsExact(Turning):
    """Declares f32, and is off by 30 units more than that allows."""

    frequencies = staticmethod(lambda base, dims: by_power(base, dims) * F32(1 + 60 * 2.0**-24))


class ReadsNoBounds(Turning):
    """Takes 32 and 1 turns for the ends of YaRN's ramp, whatever is said."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        if isinstance(rope.scaling, YaRN):
            rope = rope._replace(scaling=replace(rope.scaling, beta_fast=32.0, beta_slow=1.0))
        return super().rotate(rows, positions, rope)


class TakesAnything(Turning):
    """Turns nothing where the numbers are senseless, and says so."""

    without: tuple[str, ...] = ("checks",)

    def describe(self) -> dict[str, Any]:
        said = super().describe()
        rope = {**said["chapters"]["rope"], "without": list(self.without)}
        return {**said, "chapters": {**said["chapters"], "rope": rope}}

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        try:
            return super().rotate(rows, positions, rope)
        except Refused:
            return rows.copy()


class TakesAnythingUnsaid(TakesAnything):
    without = ()


class ChoosesOnce(Undeclared):
    """The largest position of a call chooses the list of LongRoPE for all its rows; it declares nothing."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        scaling = rope.scaling
        if isinstance(scaling, LongRoPE) and positions.max(initial=0) >= scaling.original:
            rope = rope._replace(scaling=replace(scaling, short=scaling.long))
        return super().rotate(rows, positions, rope)
