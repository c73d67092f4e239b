"""The bound of ATTN-32: engines that compute otherwise are within it, and what is wrong is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from kvref import strict
from kvref.attended import LOST, UNIT, U, weighed
from kvspec.geometry import DTYPES, Array

F32 = np.float32


class Case(NamedTuple):
    """One query `[k_dim]` over rows `[K, dim]`, as f32 numbers that the dtype holds, and what a mask adds."""

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
            return weighed(*wide, self.dtype)


def stored(array: Array, dtype: str) -> Array:
    """As a cache holds it, in f32."""
    with np.errstate(over="ignore"):
        return np.asarray(array, F32).astype(DTYPES[dtype]).astype(F32)


def case(seed: int, how: str, dtype: str) -> Case:
    """Random numbers, bent one way or another."""
    rng = np.random.default_rng(seed)
    rows, dim = int(rng.choice((1, 2, 7, 33, 100))), int(rng.choice((1, 5, 16, 64)))
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
    asked = strict.Asked(c.added[None, None, None], np.array([0]), np.array([len(c.keys)]))
    return np.asarray(
        strict.attend(c.query[None, None, None], c.keys[None, None], c.values[None, None], 0, asked)[0, 0, 0]
    )


ENGINES: tuple[Callable[[Case], Array], ...] = (blas, normalised, rounded_weights, online, backwards, strictly)


def fraction(c: Case, found: Array) -> float:
    """How much of the bound is used, by the worst element."""
    output, bound = c.bound
    used = np.abs(found.astype(np.float64) - output) / bound
    return float(np.nanmax(np.where(np.isfinite(bound), used, 0.0)))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_engines_that_compute_otherwise_are_within_it(engine: Callable[[Case], Array]) -> None:
    with np.errstate(under="ignore"):
        used = {at: fraction(c := case(*at), engine(c)) for at in CASES}
    assert max(used.values()) <= 1, [at for at, u in used.items() if u > 1][:3]


def one_row_less(c: Case) -> Array:
    """The newest row is lost."""
    return blas(c._replace(keys=c.keys[:-1], values=c.values[:-1], added=c.added[:-1]))


def one_row_twice(c: Case) -> Array:
    """The newest row is read twice."""
    again = [np.concatenate([a, a[-1:]]) for a in (c.keys, c.values, c.added)]
    return blas(c._replace(keys=again[0], values=again[1], added=again[2]))


def a_row_of_zeros(c: Case) -> Array:
    """A row that nobody wrote."""
    more = [np.concatenate([a, np.zeros_like(a[-1:])]) for a in (c.keys, c.values, c.added)]
    return blas(c._replace(keys=more[0], values=more[1], added=more[2]))


def not_scaled(c: Case) -> Array:
    """The root is forgotten."""
    return blas(c._replace(query=c.query * np.sqrt(F32(len(c.query)))))


def other_width(c: Case) -> Array:
    """Scaled by the width of the values."""
    return blas(c._replace(query=c.query * np.sqrt(F32(len(c.query) / c.values.shape[1]))))


def shifted(c: Case) -> Array:
    """Keys and values of different rows."""
    return blas(c._replace(values=np.roll(c.values, 1, axis=0)))


def not_divided(c: Case) -> Array:
    """Weights that are not normalised."""
    scores = c.keys @ c.query / np.sqrt(F32(len(c.query))) + c.added
    return np.asarray(np.exp(scores - scores.max()) @ c.values)


def base_two(c: Case) -> Array:
    """2 instead of e."""
    return blas(c._replace(query=c.query * F32(np.log(2)), added=c.added * F32(np.log(2))))


WRONG = (one_row_less, one_row_twice, a_row_of_zeros, not_scaled, other_width, shifted, not_divided, base_two)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w.__name__)
def test_what_is_wrong_is_outside_of_it(wrong: Callable[[Case], Array], dtype: str) -> None:
    cases = [case(seed, "plain", dtype) for seed in range(90)]
    cases = [c for c in cases if 2 <= len(c.keys) <= 33 and len(c.query) not in (1, 6)]
    caught = [fraction(c, wrong(c)) > 1 for c in cases]
    assert len(cases) > 20
    # one of many may pass, where a row weighs next to nothing
    assert sum(caught) >= 0.9 * len(cases)


def worst(c: Case, rng: np.random.Generator) -> Array:
    """Every error that the derivation allows, as large as it may be: all against the output, or of random signs."""
    rows, dim = c.keys.shape
    query, keys, values, added = (a.astype(np.float64) for a in (c.query, c.keys, c.values, c.added))
    scores = keys @ query / np.sqrt(dim) + added
    size = np.abs(keys) @ np.abs(query) / np.sqrt(dim) + np.abs(added)
    output, found = c.bound[0], np.empty(values.shape[1])
    for d in range(values.shape[1]):
        side = np.sign(values[:, d] - output[d]) if rng.random() < 0.7 else rng.choice((-1, 1), rows)
        off = side * ((dim + 3) * U * size + 3 * U * np.abs(scores - scores.max()) + (4 + 5 * (rows + 1)) * U)
        weights = np.exp(scores + off - scores.max())
        up = np.sign(values[:, d]) * (1 if rng.random() < 0.7 else -1)
        above = (weights * values[:, d] * (1 + up * (UNIT[c.dtype] + (rows + 1) * U))).sum()
        found[d] = above / (weights * (1 - np.sign(above) * rows * U)).sum() * (1 + U)
    return found


def test_the_worst_that_the_derivation_allows_is_within_it_and_comes_near() -> None:
    rng = np.random.default_rng(2)
    used = []
    for at in CASES:
        used += [fraction(c := case(*at), worst(c, rng)) for _ in range(3)]
    assert max(used) <= 1
    assert max(used) > 0.7, "a bound that nothing comes near is too wide"


def test_every_constant_is_needed() -> None:
    """An error that only one part of the bound allows takes up most of it."""
    rng = np.random.default_rng(4)
    query, keys, values = F32(rng.standard_normal(64)), F32(rng.standard_normal((2, 64))), F32([[1.0], [-1.0]])
    wide = Case(query * F32(100), keys[:1].repeat(2, 0), values, F32([0, -3]), "f32")
    size = float(np.abs(wide.keys[0].astype(np.float64)) @ np.abs(wide.query.astype(np.float64))) / 8
    light = np.exp(-3 + 2 * 67 * U * size)
    assert 0.9 < fraction(wide, np.array([(1 - light) / (1 + light)])) <= 1  # scores
    coarse = Case(query, keys * 0, values + 2, F32([0, 0]), "bf16")
    assert 0.9 < fraction(coarse, np.array([2 * (1 + UNIT["bf16"])])) <= 1  # weights in the dtype of the rows
    small = Case(query, keys * 0, F32([[0.0], [60000.0]]), F32([0, -30]), "f16")
    assert fraction(small, np.array([0.0])) <= 1, "a weight below 2^-24 that f16 loses"
    assert LOST["f16"] * 60000 > small.bound[0][0] > 0
    gone = Case(query, keys * 0, F32([[0.0], [3e38]]), F32([0, -88]), "f32")
    assert fraction(gone, np.array([0.0])) <= 1, "a weight below 2^-125 that strict attention loses"


def test_one_row_is_itself_but_for_roundings() -> None:
    for dtype, how in ((d, h) for d in DTYPES for h in HOW if h != "tiny"):
        c = next(c for c in (case(seed, how, dtype) for seed in range(99)) if len(c.keys) == 1)
        output, bound = c.bound
        assert (output == c.values[0]).all()
        assert (bound <= (UNIT[dtype] + 12 * U) * np.abs(output) + LOST[dtype] * (1 + np.abs(output))).all()


def test_nothing_is_said_of_what_is_not_finite() -> None:
    c = case(3, "plain", "f32")
    far = np.full_like(c.values, 3e38)
    for query, values in ((c.query * F32(np.inf), c.values), (c.query * F32(np.nan), c.values), (c.query, far)):
        assert np.isinf(c._replace(query=query, values=values).bound[1]).all()
    assert np.isinf(c._replace(query=c.query * F32(2.0**124)).bound[1]).all()
    assert np.isfinite(c.bound[1]).all()


def test_a_row_that_outweighs_all_others_leaves_no_room() -> None:
    """Scores so large that each is off by many units: what is left is the largest, and that is known."""
    c = Case(F32([2.0**60]), F32([[1.0], [0.5]]), F32([[3.0], [-7.0]]), F32([0, 0]), "f32")
    output, bound = c.bound
    assert output[0] == 3 and bound[0] < 1e-5


def test_the_units_are_half_a_digit() -> None:
    for dtype, unit in UNIT.items():
        assert float(ml_dtypes.finfo(DTYPES[dtype]).eps) / 2 == unit
