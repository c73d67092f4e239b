"""How much of its bound an element that RoPE turned is off by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvref.list_model import rope as listed
from kvref.list_model.rows import U
from kvspec.contract.attention import Rope
from kvspec.geometry import DTYPES, Array
from support.bounds import Used, steps, used

DIMS, N = 128, 256
FAR = 1 << 17
"""Positions are below this."""

Turns = Callable[[Array, Array, Rope], Array]


def sample(seed: int, dtype: str) -> tuple[Array, Array]:
    """Rows `[1, 1, N, DIMS]`, some of whose pairs nearly cancel as they are turned, and positions `[N]`."""
    random = np.random.default_rng(seed)
    positions = random.integers(0, FAR, N)
    rows = random.standard_normal((1, 1, N, DIMS))
    i = np.arange(DIMS // 2)
    angles = positions[:, None] * 10000.0 ** (-2 * i / DIMS)
    rows[0, 0, ::2, : DIMS // 2], rows[0, 0, ::2, DIMS // 2 :] = np.sin(angles[::2]), np.cos(angles[::2])
    return rows.astype(np.float32).astype(DTYPES[dtype]), positions


def on(name: str) -> Turns:
    """An adapter's own."""
    adapter: Any = steps.adapter(name)
    return lambda rows, positions, rope: np.asarray(adapter.rotate(rows, positions, rope))


def in_f32(rows: Array, positions: Array, rope: Rope) -> Array:
    """Frequencies, angles, cosines and sines in f32."""
    return _with(np.float32(rope.base) ** (np.arange(0, DIMS, 2, dtype=np.float32) / -DIMS), rows, positions)


def by_running_products(rows: Array, positions: Array, rope: Rope) -> Array:
    """The same, where each frequency is the one before it times one factor, and cut off to f32. The factor is a
    power as far off as the chapter lets it be: 2 u."""
    exact = rope.base ** (-2 / DIMS)
    factor, found = _cut_off(exact), [1.0]
    while (smaller := float(np.nextafter(np.float32(factor), np.float32(0)))) >= exact * (1 - 2 * U):
        factor = smaller
    while len(found) < DIMS // 2:
        found.append(_cut_off(found[-1] * factor))
    return _with(np.array(found, np.float32), rows, positions)


def _cut_off(number: float) -> float:
    """The largest f32 number that is not above one."""
    near = np.float32(number)
    return float(near if float(near) <= number else np.nextafter(near, np.float32(0)))


def _with(frequencies: Array, rows: Array, positions: Array) -> Array:
    """Rows turned by these frequencies, in f32."""
    angles = positions[:, None].astype(np.float32) * frequencies
    c, s, (a, b) = np.cos(angles), np.sin(angles), np.split(rows.astype(np.float32), 2, -1)
    return np.concatenate([a * c - b * s, a * s + b * c], -1).astype(rows.dtype)


def worst(by: str, turns: Turns, dtype: str, samples: int, angles: str = "f64") -> Used:
    """The worst element over so many times N rows."""
    return max(_one(by, turns, dtype, seed, angles) for seed in range(samples))


def _one(by: str, turns: Turns, dtype: str, seed: int, angles: str) -> Used:
    rows, positions = sample(seed, dtype)
    want = listed.turned(listed.exactly(rows, dtype), positions, Rope(), listed.Declared(angles=angles))
    return used(by, turns(rows, positions, Rope()), want.middle, want.bound)
