"""Engines that compute attention each in its own way, in f32, and queries to try the bound of ATTN-44 on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kvref.arithmetic import strict_attention
from kvref.list_model.attention_bound import weighed
from kvspec.geometry import DTYPES, Array

F32 = np.float32


class Case(NamedTuple):
    """One query `[k_dim]` over rows `[K, dim]`, as f32 numbers that the dtype holds, and what a mask adds, `[K]`,
    or `[n, K]` of several arrays."""

    query: Array
    keys: Array
    values: Array
    added: Array
    dtype: str

    @property
    def bound(self) -> tuple[Array, Array]:
        """The exact output and the bound."""
        with np.errstate(all="ignore"):
            wide = (a.astype(np.float64) for a in (self.query, self.keys, self.values, self.added))
            return weighed(*wide, self.dtype)[:2]


def stored(array: Array, dtype: str) -> Array:
    """As a cache holds it, in f32."""
    with np.errstate(over="ignore"):
        return np.asarray(array, F32).astype(DTYPES[dtype]).astype(F32)


def case(seed: int, how: str, dtype: str, rows: int = 0, dim: int = 0) -> Case:
    """Random numbers, bent one way or another; of few rows and elements, unless it is said how many."""
    rng = np.random.default_rng(seed)
    few, narrow = int(rng.choice((1, 2, 7, 33, 100))), int(rng.choice((1, 5, 16, 64)))
    rows, dim = rows or few, dim or narrow
    query, keys = rng.standard_normal(dim), rng.standard_normal((rows, dim))
    values, added = rng.standard_normal((rows, 6)), np.zeros(rows)
    if how == "cancelling":
        values = (values * 1e-4 + 1e3) * np.where(np.arange(rows) % 2, -1, 1)[:, None]
        keys = keys * 1e-3
    elif how == "huge":
        query = query * 2.0**20
    elif how == "tiny":
        query, values = query * 2.0**-40, values * 2.0**-100
    elif how == "equal":
        keys = keys[:1].repeat(rows, axis=0)
    elif how == "alike":
        values = values[:1].repeat(rows, axis=0)
    elif how == "needles":
        keys, values = keys / 4, np.abs(values) * 2.0**-24
        values[rng.choice(rows, 6, replace=rows < 6), np.arange(6)] = 1024
    elif how == "added":
        added = rng.integers(-80, 80, rows) / 4
    elif how == "rising":
        keys = np.sort(rng.uniform(0, 6, rows))[:, None] * np.sign(query) / max(1.0, np.abs(query).sum() / dim**0.5)
    return Case(F32(query), stored(keys, dtype), stored(values, dtype), F32(added), dtype)


HOW = ("plain", "cancelling", "huge", "tiny", "equal", "alike", "added", "rising")
CASES = [(seed, how, dtype) for how in HOW for dtype in DTYPES for seed in range(12)]


def blas(c: Case) -> Array:
    """What anybody would write first."""
    scores = c.keys @ c.query * F32(1 / np.sqrt(len(c.query))) + c.added
    weights = np.exp(scores - scores.max())
    return np.asarray(weights @ c.values / weights.sum(dtype=F32))


def normalised(c: Case) -> Array:
    """Queries scaled first, powers of 2, weights normalised before they are rounded to the rows' dtype."""
    scale = F32(1.4426950408889634 / np.sqrt(len(c.query)))
    scores = c.keys @ (c.query * scale) + c.added * F32(1.4426950408889634)
    weights = np.exp2(scores - scores.max())
    return np.asarray(stored(weights / weights.sum(dtype=F32), c.dtype) @ c.values)


def rounded_weights(c: Case) -> Array:
    """Weights rounded to the rows' dtype, their sum not."""
    scores = c.keys @ c.query / np.sqrt(F32(len(c.query))) + c.added
    weights = np.exp(scores - scores.max())
    return np.asarray(stored(weights, c.dtype) @ c.values / weights.sum(dtype=F32))


def rounded_sum(c: Case) -> Array:
    """Weights rounded to the rows' dtype before they are summed."""
    scores = c.keys @ c.query / np.sqrt(F32(len(c.query))) + c.added
    weights = stored(np.exp(scores - scores.max()), c.dtype)
    return np.asarray(weights @ c.values / weights.sum(dtype=F32))


def online(c: Case) -> Array:
    """A maximum that grows row by row."""
    m, total, sums = F32(-np.inf), F32(0), np.zeros(c.values.shape[1], F32)
    for key, value, added in zip(c.keys, c.values, c.added, strict=True):
        score = F32(F32(np.dot(key, c.query)) / np.sqrt(F32(len(c.query))) + added)
        larger = max(m, score)
        again, weight = np.exp(m - larger), np.exp(score - larger)
        m, total, sums = larger, total * again + weight, sums * again + weight * value
    return np.asarray(sums / total)


def backwards(c: Case) -> Array:
    """The last row first, in parts of 8 that are joined by their largest maximum."""
    parts = []
    for first in range(len(c.keys) - 1, -1, -8):
        rows = slice(first, None if first < 8 else first - 8, -1)
        scores = (c.keys[rows] * c.query).sum(1, dtype=F32) * F32(1 / np.sqrt(len(c.query))) + c.added[rows]
        weights = np.exp(scores - scores.max())
        parts.append((scores.max(), weights.sum(dtype=F32), weights @ c.values[rows]))
    m = max(p[0] for p in parts)
    factors = [np.exp(p[0] - m) for p in parts]
    return np.asarray(
        sum(f * p[2] for f, p in zip(factors, parts, strict=True))
        / sum(f * p[1] for f, p in zip(factors, parts, strict=True))
    )


def strictly(c: Case) -> Array:
    """Strict attention itself."""
    asked = strict_attention.Asked(c.added[None, None, None], np.array([0]), np.array([len(c.keys)]))
    return np.asarray(
        strict_attention.attend(c.query[None, None, None], c.keys[None, None], c.values[None, None], 0, asked)[
            0, 0, 0
        ]
    )


ENGINES: tuple[Callable[[Case], Array], ...] = (
    blas,
    normalised,
    rounded_weights,
    rounded_sum,
    online,
    backwards,
    strictly,
)


def fraction(c: Case, found: Array) -> float:
    """How much of the bound is used, by the worst element."""
    output, bound = c.bound
    used = np.abs(found.astype(np.float64) - output) / bound
    return float(np.nanmax(np.where(np.isfinite(bound), used, 0.0)))
