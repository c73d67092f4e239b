"""Attention with another scale or a softcap: it computes the scores first, then does strict attention over them.

Every rounding is fixed as in strict attention; all numbers are f32, and `fma` rounds once:

1. The query is scaled: q[d] * scale, rounded. If no scale is given, it is 1 / sqrt(k_dim), computed in f64.
2. A row's score is the chain x = fma(k[d], q[d], x) for d = 0, 1, ... from 0. 3. With a softcap c above 0: g is 2
log2(e) / c, computed in f64 and rounded. z is exp2(-|x| * g), the product rounded. t is (1 - z) / (1 + z), each of
the three operations rounded. x becomes c * t, rounded, with its sign. That is c tanh(x / c).
4. What the mask's arrays add, summed in their order, is added to x, rounded. A row that the query may not see has
   the score minus infinity.
5. Steps 2 to 7 of strict attention follow, over rows without elements, x being what a mask adds to their scores.
"""

from __future__ import annotations

import numpy as np

from kvref.arithmetic import strict_attention as strict
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array


def wanted(how: Attention) -> bool:
    """Tell whether scores are computed here: another scale or a softcap is given."""
    return how.scale is not None or how.softcap > 0


def attend(queries: Array, held: Pair, first: int, asked: strict.Asked, how: Attention) -> Array:
    """Outputs `[B, heads, L, v_dim]` in f32 of queries `[B, heads, L, k_dim]` over the rows held, in position order
    from `first` on."""
    with np.errstate(all="ignore"):
        found = scores(queries, held.keys, how)
        found = np.where(asked.added == -np.inf, -np.inf, _f32(found + asked.added))
    none = np.zeros_like(queries), np.zeros(held.keys.shape)
    asked = asked._replace(added=found)
    return strict.attend(*none, held.values, first, asked, how.splits, sinks=how.sinks, parts=how.parts)


def scores(queries: Array, keys: Array, how: Attention) -> Array:
    """The score of each row, `[B, heads, L, K]`, before a mask."""
    batch, heads, length, dim = queries.shape
    shape = batch, keys.shape[1], heads // keys.shape[1], length
    q = _f32(queries.astype(np.float64) * scale(how, dim)).reshape(*shape, dim)
    k, x = keys.astype(np.float64)[:, :, None, None], np.zeros((*shape, keys.shape[2]))
    for d in range(dim):
        x = strict.fma(k[..., d], q[..., d, None], x)
    x = x.reshape(batch, heads, length, -1)
    return capped(x, how.softcap) if how.softcap > 0 else x


def scale(how: Attention, k_dim: int) -> np.float64:
    """What queries are multiplied by, an f32 number."""
    return np.float64(np.float32(1 / np.sqrt(np.float64(k_dim)) if how.scale is None else how.scale))


def capped(x: Array, cap: float) -> Array:
    """c tanh(x / c) of scores, for a cap c above 0."""
    size = _f32(np.abs(x) * slope(cap))
    z = strict.exp2(-size)
    t = _f32(_f32(1.0 - z) / _f32(1.0 + z))
    return np.copysign(_f32(np.float64(np.float32(cap)) * t), x)


def slope(cap: float) -> np.float64:
    """2 log2(e) / c, an f32 number."""
    return np.float64(np.float32(2 * 1.4426950408889634 / cap))


def _f32(x: Array) -> Array:
    return np.asarray(x, np.float32).astype(np.float64)
