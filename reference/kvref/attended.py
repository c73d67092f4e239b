"""Attention in the list model: each query's output in float64, and how far from it an f32 implementation may be.

The bound is that of ATTN-32, where it is derived. With u = 2^-24, for a query that sees K rows with exact scores
s_j, of which the largest is s_m, t_j = s_j - s_m, weights w_j = exp(t_j) and p_j = w_j / sum w:

- A score is off by at most e_j = (k_dim + 4) u (sum |q k| / sqrt(k_dim) + |added|); where q and k may be off
  themselves, as those that RoPE turned (`Off`), by sum(|k| off q + (|q| + off q) off k) / sqrt(k_dim) more.
- Weights, as multiples of the largest, are off by a factor of exp(X_j) at most, X_j = e_j + e_m + (3 |t_j| + 10 K +
  20) u. That moves the output by A = sum over j other than m of (exp(t_j + X_j) - w_j) |v_j - output|.
- Products, sums, the division and weights that are rounded to the dtype of the rows (w) make at most
  (w + (2 K + 8) u) / (1 - (K + 8) u) of the mean of |v|, which is sum p |v|, moved as the output is.
- What underflows: `LOST` of each |v|, and 2^-126 for each product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from kvspec.geometry import Array

U = 2.0**-24
"""Largest relative error of one operation in f32."""

UNIT = {"f32": U, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of rounding a number to a dtype."""

LOST = {"f32": 2.0**-124, "f16": 2.0**-24, "bf16": 2.0**-124}
"""The most that a weight loses where it has no relative bound: twice 2^-125 in f32, the last digit of f16."""

LARGEST = float(np.finfo(np.float32).max) / 4
"""What sums of absolute values may come to: beyond it one of them may overflow, and nothing is said."""


class Output(NamedTuple):
    """What outputs should be, and how far from that they may be: f64, both `[B, heads, L, v_dim]`. Where the bound
    is infinite, nothing is said."""

    middle: Array
    bound: Array


Seen = Mapping[int, float]
"""What a query sees: rows by serial, and what is added to the score of each."""

Rows = tuple[Array, Array]
"""A key and a value row, `[B, kv_heads, dim]`."""


class Kept(Protocol):
    """Rows by serial."""

    def __getitem__(self, serial: int, /) -> Rows: ...


class Off(NamedTuple):
    """How far the queries `[B, heads, L, k_dim]` and the keys `[B, kv_heads, k_dim]`, by serial, may be from those
    given: such as were turned by RoPE before."""

    queries: Array
    keys: Mapping[int, Array]


def outputs(
    queries: Array,
    sees: Sequence[Sequence[Sequence[Seen]]],
    kept: Kept,
    dtype: str,
    v_dim: int,
    off: Off | None = None,
) -> Output:
    """For queries `[B, heads, L, k_dim]` and what each of them sees, `[B][heads or 1][L]`."""
    off = Off(np.zeros_like(queries), {}) if off is None else off
    found = Output(*(np.zeros((*queries.shape[:3], v_dim)) for _ in range(2)))
    for b, h, i in np.ndindex(queries.shape[:3]):
        seen = sees[b][min(h, len(sees[b]) - 1)][i]
        if seen:
            found.middle[b, h, i], found.bound[b, h, i] = _one(
                (queries[b, h, i], off.queries[b, h, i]), seen, (kept, off.keys), (b, h, queries.shape[1]), dtype
            )
    return found


def _one(
    asked: tuple[Array, Array],
    seen: Seen,
    known: tuple[Kept, Mapping[int, Array]],
    at: tuple[int, int, int],
    dtype: str,
) -> tuple[Array, Array]:
    (b, h, heads), (kept, off) = at, known
    head = h // (heads // kept[next(iter(seen))][0].shape[1])
    with np.errstate(invalid="ignore"):
        keys, values = (np.stack([kept[s][part][b, head] for s in seen]).astype(np.float64) for part in (0, 1))
    query, loose = (a.astype(np.float64) for a in asked)
    astray = np.stack([off[s][b, head] if s in off else np.zeros_like(query) for s in seen])
    with np.errstate(all="ignore"):
        scores = (np.abs(keys) @ loose + astray @ (np.abs(query) + loose)) / np.sqrt(len(query))
        return weighed(query, keys, values, np.array(list(seen.values())), dtype, scores)


def weighed(
    query: Array, keys: Array, values: Array, added: Array, dtype: str, astray: Array | float = 0.0
) -> tuple[Array, Array]:
    """The output of one query `[k_dim]` over rows `[K, dim]` of a dtype, and its bound `[v_dim]`, all in f64;
    scores may be `astray` beside."""
    dim, rows = query.shape[0], keys.shape[0]
    scores = keys @ query / np.sqrt(dim) + added
    size = np.abs(keys) @ np.abs(query) / np.sqrt(dim) + np.abs(added) + astray
    largest = scores.max()
    t, error = scores - largest, (dim + 4) * U * size + astray
    spread = error + error[scores.argmax()] + (3 * np.abs(t) + 10 * rows + 20) * U
    weights = np.exp(t)
    off = np.where(np.arange(rows) == scores.argmax(), 0.0, np.exp(t + spread) - weights)
    p = weights / weights.sum()
    output, mean = p @ values, p @ np.abs(values)
    rounded = (UNIT[dtype] + (2 * rows + 8) * U) / (1 - (rows + 8) * U)
    lost = LOST[dtype] * np.abs(values).sum(0) + rows * 2.0**-126
    bound = off @ np.abs(values - output) + rounded * (mean + off @ np.abs(np.abs(values) - mean)) + lost
    sound = np.isfinite(scores).all() & (size.max() * np.sqrt(dim) < LARGEST) & (np.abs(values).sum(0) < LARGEST)
    return np.where(sound, output, np.nan), np.where(sound, bound, np.inf)


__all__ = ["Kept", "Off", "Output", "Seen", "outputs", "weighed"]
