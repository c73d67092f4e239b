"""Attention in the list model: each query's output in float64, and how far from it an f32 implementation may be.

The bound is that of ATTN-44, where it is derived. Let u = 2^-24. A query sees K rows with exact scores s_j = q k_j
/ sqrt(k_dim) + what n arrays add. The largest score is s_m, and t_j = s_j - s_m. Weights are w_j = exp(t_j) and
p_j = w_j / sum w. The output is o, and V = sum p |v|.

- A score is off by at most e_j = f_j + (k_dim + n + 3) u (sum |q k_j| / sqrt(k_dim) + sum |added| + f_j), where n
  is at least 1. f_j = 2^-126 sum (|q| + |k_j|) is what underflows. If q and k may be off themselves, for instance
  after RoPE (`Off`), f_j is larger by sum(|k_j| off q + (|q| + off q) off k_j) / sqrt(k_dim).
- Weights, as multiples of the largest, are off by a factor of exp(X_j) at most, up or down, X_j = e_j + e_m + (3
  |t_j| + 10 K + 20) u. So they sum up to S = 1 + sum over j other than m of w_j exp(-X_j) at least. That moves the
  output by at most A = sum over j other than m of (exp(t_j + X_j) - w_j) |v_j - o| / S. It moves the mean of |v|
  by at most G, the same sum with | |v_j| - V |.
- Products, sums, the division, and weights that are rounded to the dtype of the rows (w), above the line and
  below, make at most R (V + G). R is (2 w + (2 K + 8) u) / (1 - w - (2 K + 8) u).
- A scale that is given replaces 1 / sqrt(k_dim); one above 1 multiplies f_j.
- With a softcap c a score is c tanh(x / c) + what arrays add, x = q k_j times the scale. Let e be what e_j is of
  x alone. The derivative of c tanh(x / c) is 1 / cosh(x / c)^2, at most 1, so what x is off moves the score no
  further. An f32 tanh takes x / c or 2 x / c, rounded twice: 4 u sum |q k_j| scale. It is off by at most 14 u,
  where 1 - exp(-2 |x| / c) is computed as it stands, and is multiplied by c: 16 u c in all (`CAPPED`). So with e'
  = e + 4 u sum |q k_j| scale + 16 u c + 2^-126, e_j = e' + (n + 3) u (c + sum |added| + e'). Where a claim declares
  the tanh of the hardware, e' is larger by 2^-11 (|c tanh(x / c)| + e') (`TANH`).
- A learned sink is a row more for whoever asks: its key and its value are zeros, and the logit is added to its
  score. So K is one more, and so is each sum above.
- Parts may be joined by the logarithms L of their sums. Each L is at most max |s| + ln K. It is rounded, counted
  in powers of 2 and back, and comes of a logarithm that is off by 4 u of itself. The exponential of a difference
  of two of them is taken. So X_j is larger by 2 (8 (max |s| + ln K) + 12) u (`JOINED`).
- What underflows in weights and in sums adds `LOST` of each |v_j|, `LOST` of V + G for each row, and K 2^-124.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from kvref.list_model.rows import Added, U
from kvspec.geometry import Array

UNIT = {"f32": U, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of rounding a number to a dtype."""

LOST = {"f32": 2.0**-124, "f16": 2.0**-24, "bf16": 2.0**-124}
"""The most that a weight loses where it has no relative bound: twice 2^-125 in f32, the last digit of f16."""

CAPPED = 16
"""What an f32 tanh, times the cap, may be off, in units of the cap."""

TANH = {"f32": 0.0, "hardware": 2.0**-11}
"""What a tanh may be off relative to itself, beside `CAPPED`."""

JOINED = 8
"""What a logarithm of a sum of weights may be off, in units of its size."""

TINY = 2.0**-126
"""The least normal f32 number: of anything below it all may be lost."""

LARGEST = float(np.finfo(np.float32).max) / 4
"""What sums of absolute values may come to: beyond it one of them may overflow, and there is no bound."""


class Scoring(NamedTuple):
    """How scores are made. A scale of None is 1 / sqrt(k_dim), and a softcap of 0 is none. Its tanh may be off by
    `tanh`. Then the learned sink of each query head (empty: none), and whether parts of the rows are joined."""

    scale: float | None = None
    softcap: float = 0.0
    tanh: float = TANH["f32"]
    sinks: tuple[float, ...] = ()
    parts: bool = False


PLAIN = Scoring()
"""No scale of its own, and no softcap."""


class Output(NamedTuple):
    """What outputs should be, and how far from that they may be: f64, all `[B, heads, L, v_dim]`. A bound is never
    NaN; where it is infinite, any output will do."""

    middle: Array
    bound: Array
    fewer: Array
    """What outputs would be without one row: for each query that whose loss shows most beside the bound."""


Rows = tuple[Array, Array]
"""A key and a value row, `[B, kv_heads, dim]`."""


class Kept(Protocol):
    """Rows by serial."""

    def __getitem__(self, serial: int, /) -> Rows: ...


class Off(NamedTuple):
    """How far queries `[B, heads, L, k_dim]` and keys `[B, kv_heads, k_dim]`, by serial, may be from those given,
    because RoPE turned them before."""

    queries: Array
    keys: Mapping[int, Array]


def outputs(
    queries: Array,
    sees: Sequence[Sequence[Sequence[Added]]],
    kept: Kept,
    dtype: str,
    v_dim: int,
    off: Off | None = None,
    how: Scoring = PLAIN,
) -> Output:
    """For queries `[B, heads, L, k_dim]` and what each of them sees, `[B][heads or 1][L]`."""
    off = Off(np.zeros_like(queries), {}) if off is None else off
    found = Output(*(np.zeros((*queries.shape[:3], v_dim)) for _ in Output._fields))
    gathered = dict[tuple[int, int], _Rows]()  # heads and queries that see the same rows share a mapping
    for b, h, i in np.ndindex(queries.shape[:3]):
        seen = sees[b][min(h, len(sees[b]) - 1)][i]
        if not seen:
            continue
        if (b, id(seen)) not in gathered:
            gathered[b, id(seen)] = _gathered(seen, kept, off.keys, b)
        rows = gathered[b, id(seen)]
        head = h // (queries.shape[1] // len(rows.keys))
        of_head = rows.of(head).with_sink(how.sinks[h]) if how.sinks else rows.of(head)
        one = _one((queries[b, h, i], off.queries[b, h, i]), of_head, dtype, how)
        for whole, part in zip(found, one, strict=True):
            whole[b, h, i] = part
    return found


class _Rows(NamedTuple):
    """The rows that a query sees, `[kv_heads, K, dim]` in f64, what is added to their scores, `[n, K]`, and how far
    keys may be off."""

    keys: Array
    values: Array
    added: Array
    off: Array | None

    def of(self, head: int) -> _Rows:
        """Those of one head, `[K, dim]`."""
        return _Rows(self.keys[head], self.values[head], self.added, None if self.off is None else self.off[head])

    def with_sink(self, sink: float) -> _Rows:
        """One head's rows, and behind them one of zeros to whose score this is added."""
        added = np.pad(np.atleast_2d(self.added), ((0, not len(self.added)), (0, 1)))
        added[0, -1] = sink
        keys, values = (np.pad(rows, ((0, 1), (0, 0))) for rows in (self.keys, self.values))
        return _Rows(keys, values, added, None if self.off is None else np.pad(self.off, ((0, 1), (0, 0))))


def _gathered(seen: Added, kept: Kept, off: Mapping[int, Array], b: int) -> _Rows:
    pairs = [kept[serial] for serial in seen]
    with np.errstate(invalid="ignore"):
        keys, values = (_stacked([pair[part] for pair in pairs], b) for part in (0, 1))
    nothing = np.zeros_like(pairs[0][0], np.float64)
    errors = _stacked([off.get(serial, nothing) for serial in seen], b) if off else None
    return _Rows(keys, values, np.array(list(seen.values())).T, errors)


def _stacked(rows: Sequence[Array], b: int) -> Array:
    """Rows `[B, kv_heads, dim]` of one sequence as `[kv_heads, K, dim]`; far faster than `stack` for many."""
    whole = np.concatenate(rows).reshape(len(rows), *rows[0].shape)
    return whole[:, b].swapaxes(0, 1).astype(np.float64)


def _one(asked: tuple[Array, Array], rows: _Rows, dtype: str, how: Scoring) -> Output:
    query, loose = (a.astype(np.float64) for a in asked)
    with np.errstate(all="ignore"):
        score_error = np.abs(rows.keys) @ loose
        if rows.off is not None:
            score_error = score_error + rows.off @ (np.abs(query) + loose)
        score_error = score_error / _root(how, len(query))
        return weighed(query, rows.keys, rows.values, rows.added, dtype, score_error, how)


def weighed(
    query: Array,
    keys: Array,
    values: Array,
    added: Array,
    dtype: str,
    score_error: Array | float = 0.0,
    how: Scoring = PLAIN,
) -> Output:
    """The output of one query `[k_dim]` over rows `[K, dim]` of a dtype, its bound, and the output without the row
    whose loss shows most, `[v_dim]`, all in f64. `added`: what each array adds to the scores, `[n, K]`, or `[K]` of
    one. `score_error`: how far scores may be off already."""
    scores, error, sound = _scored(query, keys, np.atleast_2d(added), score_error, how)
    rows, m, t = len(scores), scores.argmax(), scores - scores.max()
    weights, spread = np.exp(t), error + error[m] + (3 * np.abs(t) + 10 * len(t) + 20) * U
    if how.parts:
        spread = spread + 2 * (JOINED * (np.abs(scores).max() + np.log(rows)) + 12) * U
    others = np.arange(rows) != m
    least = 1 + np.exp(t - spread) @ others
    more = np.where(others, np.exp(t + spread) - weights, 0.0) / least
    sizes, p = np.abs(values), weights / weights.sum()
    output, mean = _mean(p, values, values[m]), _mean(p, sizes, sizes[m])
    mean = mean + _moved(more, sizes - mean)
    bound = _moved(more, values - output) + _rounded(dtype, rows) * mean
    bound = bound + LOST[dtype] * (sizes.sum(0) + rows * mean) + rows * 4 * TINY
    sound = sound & (sizes.sum(0) < LARGEST)
    fewer = _without_one(weights, values, output, bound)
    return Output(np.where(sound, output, np.nan), np.where(sound, bound, np.inf), fewer)


def _without_one(weights: Array, values: Array, output: Array, bound: Array) -> Array:
    """The output `[v_dim]` without the row whose loss shows most beside the bound; zeros if it is the only row."""
    m, rest = weights.argmax(), weights.sum() - weights
    lost = (weights / rest)[:, None] * (output - values)
    lost[m] = _mean_without(m, weights, values) - output
    shows = np.where(lost == 0, 0.0, np.abs(lost) / bound).max(1, initial=0.0)
    return np.asarray(output + lost[np.nan_to_num(shows).argmax()])


def _mean_without(m: np.intp, weights: Array, values: Array) -> Array:
    """The mean without the heaviest row: where it outweighs all others, a difference has no digits left."""
    weights, values = np.delete(weights, m), np.delete(values, m, 0)
    total = weights.sum()
    return _mean(weights / total, values, values[0]) if total > 0 else np.zeros(values.shape[1])


def _root(how: Scoring, dim: int) -> float:
    """What products of queries and keys are divided by."""
    return float(np.sqrt(dim)) if how.scale is None else 1 / how.scale


def _scored(
    query: Array, keys: Array, added: Array, score_error: Array | float, how: Scoring
) -> tuple[Array, Array, np.bool_]:
    """The exact scores, how far each may be off, both `[K]`, and whether none can overflow."""
    if how.softcap > 0:
        return _capped(query, keys, added, score_error, how)
    arrays, dim, root = len(added), len(query), _root(how, len(query))
    scores = keys @ query / root + added.sum(0)
    before = score_error + TINY * max(1.0, 1 / root) * (np.abs(query) + np.abs(keys)).sum(-1)
    size = np.abs(keys) @ np.abs(query) / root + np.abs(added).sum(0) + before
    sound = (size.max() * max(root, 1.0) < LARGEST) & (np.abs(query).max() < LARGEST)
    return scores, before + (dim + max(arrays, 1) + 3) * U * size, sound


def _capped(
    query: Array, keys: Array, added: Array, score_error: Array | float, how: Scoring
) -> tuple[Array, Array, np.bool_]:
    """Scores that are capped before anything is added to them: the same three values as `_scored`."""
    bare, error, sound = _scored(query, keys, np.zeros((1, len(keys))), score_error, how._replace(softcap=0.0))
    size = np.abs(keys) @ np.abs(query) / _root(how, len(query))
    capped, more = how.softcap * np.tanh(bare / how.softcap), np.abs(added).sum(0)
    error = error + 4 * U * size + CAPPED * U * how.softcap + TINY
    error = error + how.tanh * (np.abs(capped) + error)
    error = error + (max(len(added), 1) + 3) * U * (how.softcap + more + error)
    return capped + added.sum(0), error, sound & (more.max() < LARGEST)


def _rounded(dtype: str, rows: int) -> float:
    """R of the chapter: what roundings make of a mean of absolute values."""
    sums = (2 * rows + 8) * U
    return (2 * UNIT[dtype] + sums) / (1 - UNIT[dtype] - sums)


def _mean(p: Array, values: Array, one: Array) -> Array:
    """The mean of values `[K, v_dim]`, computed as `one` and the mean distance from it: exact if all are alike."""
    return np.asarray(one + p @ (values - one))


def _moved(more: Array, away: Array) -> Array:
    """Bound how far a mean moves if each weight `[K]` grows by up to `more` and its value is `away` from the mean.
    A value equal to the mean does not move it, even if `more` is infinite."""
    return np.asarray(np.where(away == 0, 0.0, more[:, None] * np.abs(away)).sum(0))


__all__ = ["Kept", "Off", "Output", "Scoring", "outputs", "weighed"]
