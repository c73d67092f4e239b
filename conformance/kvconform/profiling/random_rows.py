"""Rows to measure with: random numbers, never zeros, and enough of them that no cache of the device holds them."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from kvspec.geometry import DTYPES, Array

BLOCK = 1 << 21
"""Random numbers that are drawn once; rows repeat them, each array from a place of its own."""


@cache
def _drawn() -> Array:
    return np.random.default_rng(7).standard_normal(BLOCK, np.float32)


@cache
def _cast(dtype: str) -> Array:
    return _drawn().astype(DTYPES[dtype])


def noise(shape: tuple[int, ...], dtype: str, turn: int = 0) -> Array:
    """Numbers of a normal distribution; another `turn` gives others."""
    size, block, first = prod(shape), _cast(dtype), turn * 7919 % BLOCK
    if first + size <= BLOCK:
        return block[first : first + size].reshape(shape).copy()
    return np.resize(np.roll(block, -first), size).reshape(shape)


def turns(memory: int, nbytes: int, most: int = 256) -> int:
    """How many things of so many bytes together fill half of the memory in rotation, one at least."""
    return max(1, min(most, -(-memory // (2 * max(1, nbytes)))))
