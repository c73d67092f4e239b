"""Attention in the list model: each query's output in float64, and how far from it an f32 implementation may be.

With u = 2^-24 and w the unit of the dtype of the rows (2^-24, 2^-11, 2^-8), for a query that sees rows j with exact
scores s_j and weights p_j = exp(s_j) / sum exp(s):

- A score is a sum of `dim` products, in any order, then scaled and added to: it is off by at most
  e_j = (dim + 4) u (sum |q k| / sqrt(dim) + |added|).
- The exponent is taken of s_j - m, whose rounding, and that of a factor log2(e), add 3 u |s_j - m|; exp itself 4 u;
  weights rounded to the rows' dtype w. So a weight is off by at most r_j = expm1(e_j + 3 u |s_j - m| + 4 u + w),
  relative to itself.
- Numerator and denominator are sums of K products, in any order, of tiles and splits: (K + 8) u each.

The output is the quotient, so it is off by at most sum p |v| (r_j + r + 2 (K + 8) u) / (1 - r), r = sum p_j r_j,
and by what underflows: weights and products below 2^-126 may be lost, K 2^-126 (1 + max |v|) of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kvspec.geometry import Array

U = 2.0**-24
"""Largest relative error of one operation in f32."""

UNIT = {"f32": U, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of rounding a number to a dtype."""


class Output(NamedTuple):
    """What outputs should be, and how far from that they may be: f64, both `[B, heads, L, v_dim]`. Where the bound
    is infinite, nothing is said."""

    middle: Array
    bound: Array


Seen = Mapping[int, float]
"""What a query sees: rows by serial, and what is added to the score of each."""

Kept = Mapping[int, tuple[Array, Array]]
"""Key and value row `[B, kv_heads, dim]` by serial."""


def outputs(queries: Array, sees: Sequence[Sequence[Sequence[Seen]]], kept: Kept, dtype: str, v_dim: int) -> Output:
    """For queries `[B, heads, L, k_dim]` in f32 and what each of them sees, `[B][heads or 1][L]`."""
    found = Output(*(np.zeros((*queries.shape[:3], v_dim)) for _ in range(2)))
    for b, h, i in np.ndindex(queries.shape[:3]):
        seen = sees[b][min(h, len(sees[b]) - 1)][i]
        if seen:
            found.middle[b, h, i], found.bound[b, h, i] = _one(
                queries[b, h, i], seen, kept, (b, h, queries.shape[1]), dtype
            )
    return found


def _one(query: Array, seen: Seen, kept: Kept, at: tuple[int, int, int], dtype: str) -> tuple[Array, Array]:
    b, h, heads = at
    group = heads // next(iter(kept.values()))[0].shape[1]
    keys, values = (np.stack([kept[s][part][b, h // group] for s in seen]).astype(np.float64) for part in (0, 1))
    with np.errstate(all="ignore"):
        return weighed(query.astype(np.float64), keys, values, np.array(list(seen.values())), UNIT[dtype])


def weighed(query: Array, keys: Array, values: Array, added: Array, unit: float) -> tuple[Array, Array]:
    """The output of one query `[k_dim]` over rows `[K, dim]`, and its bound."""
    dim, rows = query.shape[0], keys.shape[0]
    scores = keys @ query / np.sqrt(dim) + added
    size = np.abs(keys) @ np.abs(query) / np.sqrt(dim) + np.abs(added)
    if not np.isfinite(scores).all() or size.max() > float(np.finfo(np.float32).max) / 4:
        return np.full(values.shape[1], np.nan), np.full(values.shape[1], np.inf)
    below = scores - scores.max()
    p = np.exp(below) / np.exp(below).sum()
    off = np.expm1((dim + 4) * U * size + 3 * U * np.abs(below) + 4 * U + unit)
    mean = float(p @ off)
    weights = p[:, None] * np.abs(values)
    tail = rows * 2.0**-126 * (1 + np.abs(values).max(0))
    if mean >= 0.5:
        return p @ values, np.full(values.shape[1], np.inf)
    bound = (weights * (off[:, None] + mean + 2 * (rows + 8) * U)).sum(0) / (1 - mean) + tail
    return p @ values, bound


__all__ = ["Kept", "Output", "Seen", "outputs", "weighed"]
