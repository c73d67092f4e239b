"""Random rows to measure with: never zeros, and more than the caches of a device can hold."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from kvspec.geometry import DTYPES, Array

BLOCK = 1 << 21
"""Random numbers drawn once; arrays repeat them, each from its own start."""


@cache
def _drawn() -> Array:
    return np.random.default_rng(7).standard_normal(BLOCK, np.float32)


@cache
def _cast(dtype: str) -> Array:
    return _drawn().astype(DTYPES[dtype])


def noise(shape: tuple[int, ...], dtype: str, turn: int = 0) -> Array:
    """Draw numbers from a normal distribution; another `turn` gives other numbers."""
    size, block, first = prod(shape), _cast(dtype), turn * 7919 % BLOCK
    if first + size <= BLOCK:
        return block[first : first + size].reshape(shape).copy()
    return np.resize(np.roll(block, -first), size).reshape(shape)


def turns(memory: int, nbytes: int, most: int = 256) -> int:
    """Count the objects of this size that fill half of the memory in rotation; at least one."""
    return max(1, min(most, -(-memory // (2 * max(1, nbytes)))))
