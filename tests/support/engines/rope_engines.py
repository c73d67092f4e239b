"""Engines whose RoPE has angles in f32, in the ways that engines compute them; and some that are worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from kvadapters.reference import Reference
from kvref.rope import pairs
from kvspec.contract import Rope
from kvspec.geometry import Array

F32 = np.float32
Frequencies = Callable[[int, int], Array]


def by_power(base: int, dims: int) -> Array:
    """1 over a power, as realizar."""
    return F32(1) / F32(base) ** (np.arange(0, dims, 2, F32) / F32(dims))


def by_exponential(base: int, dims: int) -> Array:
    return np.exp(-np.log(F32(base)) * np.arange(0, dims, 2, F32) / F32(dims))


def by_running_product(base: int, dims: int) -> Array:
    """Each from the one before, as llama.cpp."""
    step = F32(base) ** (F32(-2) / F32(dims))
    return np.cumprod(np.array([1, *[step] * (dims // 2 - 1)], F32), dtype=F32)


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
            angle = positions.astype(F32)[:, None] * type(self).frequencies(rope.base, dims)
            c, s = np.cos(angle), np.sin(angle)
            wide = np.asarray(rows).astype(F32)
            x0, x1 = wide[..., first], wide[..., second]
            turned = np.asarray(made)
            turned[..., first], turned[..., second] = x0 * c - x1 * s, x0 * s + x1 * c
        still = positions == 0
        turned[:, :, still] = np.asarray(rows)[:, :, still]
        return made


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
