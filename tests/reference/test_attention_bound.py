"""The bound of ATTN-44: engines that compute otherwise are within it, and what is wrong is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest

from kvconform.judge.levels import visible
from kvconform.judge.levels.visible import Judge
from kvconform.oracle.expected import Expected
from kvconform.oracle.follow import expected
from kvref.list_model.attention_bound import LOST, TINY, UNIT, Output, weighed
from kvref.list_model.rows import U
from kvspec import notation
from kvspec.geometry import DTYPES, Array
from kvspec.operations.table import Operation
from kvspec.rows.book import SerialBook
from kvspec.session.step import Step
from support.bounds.hard import halfway
from support.engines.attention_engines import (
    CASES,
    ENGINES,
    F32,
    HOW,
    Case,
    blas,
    case,
    fraction,
    online,
    rounded_sum,
    rounded_weights,
    strictly,
)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_engines_that_compute_otherwise_are_within_it(engine: Callable[[Case], Array]) -> None:
    with np.errstate(under="ignore"):
        used = {at: fraction(c := case(*at), engine(c)) for at in CASES}
    assert max(used.values()) <= 1, [at for at, u in used.items() if u > 1][:3]


LENGTHS = (2, 16, 128, 1024, 4096, 16384)


@pytest.mark.parametrize("how", ["plain", "needles", "rising", "equal"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", LENGTHS)
def test_engines_that_compute_otherwise_are_within_it_at_any_length(how: str, dtype: str, rows: int) -> None:
    c = case(rows, how, dtype, rows)
    engines = ENGINES if rows < 5000 else [e for e in ENGINES if e is not online]
    with np.errstate(under="ignore"):
        assert max(fraction(c, engine(c)) for engine in engines) < 0.5


def without(c: Case, at: int) -> Case:
    """One row is lost."""
    return c._replace(**{part: np.delete(getattr(c, part), at, 0) for part in ("keys", "values", "added")})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", LENGTHS[1:])
def test_at_any_length_needles_show_what_is_lost(dtype: str, rows: int) -> None:
    c = case(rows, "needles", dtype, rows)
    fewer = [blas(without(c, int(at)))[d] for d, at in enumerate(c.values.argmax(0))]
    output, bound = c.bound
    assert (np.abs(output) > 5 * bound).all(), "zeros, or twice the output"
    assert (np.abs(fewer - output) > 5 * bound).all()


def test_the_output_over_one_row_fewer_is_that_without_the_row_that_shows_most() -> None:
    for seed in range(20):
        c = case(seed, "plain", "f32")
        with np.errstate(all="ignore"):
            output, bound, fewer = weighed(*(a.astype(np.float64) for a in c[:4]), "f32")
        rest = [np.delete(np.arange(len(c.keys)), j) for j in range(len(c.keys))]
        each = [
            blas(c._replace(keys=c.keys[r], values=c.values[r], added=c.added[r])) if len(r) else 0 for r in rest
        ]
        shows = [(np.abs(e - output) / bound).max() for e in each]
        assert np.allclose(fewer, each[int(np.argmax(shows))], rtol=1e-4, atol=1e-5)


def one_row_less(c: Case) -> Array:
    """The newest row is lost."""
    return blas(without(c, -1))


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
    # some of many may pass, where a row weighs next to nothing, or little and weights are rounded to bf16
    assert sum(caught) >= (0.85 if dtype == "bf16" else 0.9) * len(cases)


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
        coarse = weights * (1 + side * UNIT[c.dtype])  # as they are summed, too
        above = (coarse * values[:, d] * (1 + up * (rows + 1) * U)).sum()
        found[d] = above / (coarse * (1 - np.sign(above) * rows * U)).sum() * (1 + U)
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
    coarse = halfway("bf16").case
    assert 0.85 < fraction(coarse, rounded_sum(coarse)) <= 1  # weights in the dtype of the rows
    small = Case(query, keys * 0, F32([[0.0], [60000.0]]), F32([0, -30]), "f16")
    assert fraction(small, np.array([0.0])) <= 1, "a weight below 2^-24 that f16 loses"
    assert LOST["f16"] * 60000 > small.bound[0][0] > 0
    gone = Case(query, keys * 0, F32([[0.0], [3e38]]), F32([0, -88]), "f32")
    assert fraction(gone, np.array([0.0])) <= 1, "a weight below 2^-125 that strict attention loses"


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("rows", [3, 5, 8, 12, 20])
def test_weights_may_be_rounded_above_the_line_and_below(dtype: str, rows: int) -> None:
    c = halfway(dtype, rows).case
    assert fraction(c, rounded_sum(c)) <= 1 and fraction(c, rounded_weights(c)) <= 1
    assert rows < 8 or fraction(c, rounded_sum(c)) > 0.7


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 1536, 32768, 1 << 20])
def test_roundings_are_counted_to_all_orders(rows: int, dtype: str) -> None:
    """Values that are alike are off by roundings alone."""
    ones, unit = F32(np.ones((rows, 1))), np.longdouble(UNIT[dtype])
    left = Case(F32([1]), ones * 0, ones, ones[:, 0] * 0, dtype).bound[1][0] - LOST[dtype] * 2 * rows
    sums = (1 + np.longdouble(U)) ** (rows + 2) / (1 - np.longdouble(U)) ** rows
    most = (1 + unit) / (1 - unit) * sums - 1
    assert most <= left and (rows < 9 or left < 1.1 * most)


def flushing(c: Case) -> Array:
    """Numbers below the normal ones are 0."""
    query, keys = (np.where(np.abs(a) < TINY, F32(0), a) for a in (c.query, c.keys))
    return blas(c._replace(query=query, keys=keys))


def test_elements_that_underflow_may_move_a_score() -> None:
    """Huge keys bring up what a query loses among the subnormal numbers, and huge queries what keys lose there."""
    subnormal = np.full(64, 1.4e-45)
    lost = Case(
        F32(subnormal), F32([subnormal * 0 + 3e38, subnormal * 0 - 3e38]), F32([[1], [-1]]), F32([0, 0]), "f32"
    )
    assert lost.bound[0][0] > 3e-6 and strictly(lost)[0] == 0 and fraction(lost, strictly(lost)) <= 1
    least, huge = 2.0**-126 * (1 - 2.0**-23), 2.0**124
    for query, key in ((least, huge), (huge, least)):
        c = Case(F32([query]), F32([[key], [-key]]), F32([[1], [-1]]), F32([0, 0]), "f32")
        assert 0.4 < fraction(c, flushing(c)) <= 1 and fraction(c, strictly(c)) <= 1


def added_up(c: Case, order: Sequence[int]) -> Array:
    """Arrays are added up in f32 in some order."""
    return blas(c._replace(added=np.add.accumulate(c.added[list(order)], dtype=F32)[-1]))


def one_after_another(c: Case) -> Array:
    """Arrays are added to the scores, each to what there is."""
    scores = c.keys @ c.query / np.sqrt(F32(len(c.query)))
    for array in c.added[::-1]:
        scores = scores + array
    weights = np.exp(scores - scores.max())
    return np.asarray(weights @ c.values / weights.sum(dtype=F32))


def test_arrays_may_be_added_in_any_order_or_exactly() -> None:
    rng, beyond = np.random.default_rng(8), 0
    for seed in range(60):
        c = case(seed, "plain", "f32")
        large = rng.standard_normal((2, len(c.keys))) * 10.0 ** rng.integers(1, 5)
        c = c._replace(added=F32([large[0], rng.standard_normal(len(c.keys)), large[1], -large[0], -large[1]]))
        exactly = Case(*c[:3], F32(c.added.astype(np.float64).sum(0)), "f32")
        found = [added_up(c, order) for order in ((0, 1, 2, 3, 4), (4, 1, 2, 0, 3))] + [one_after_another(c)]
        assert max(fraction(c, f) for f in (*found, blas(exactly))) <= 1
        beyond += any(fraction(exactly, f) > 1 for f in found)
    assert beyond > 5, "where the sum is taken for one array"


def test_every_array_is_a_rounding() -> None:
    """Of the first row each addition loses half a digit, of the second each gains one."""
    added = np.ones((8, 2)) * [1, 1.0001]
    added[0] = 2.0**24 + 16, 2.0**24 + 4
    c = Case(F32([1]), F32([[0], [0]]), F32([[0], [1]]), F32(added), "f32")
    assert c.bound[0][0] < 1e-5 and added_up(c, range(8))[0] > 0.8
    assert fraction(c, added_up(c, range(8))) <= 1


def test_nothing_is_said_of_arrays_whose_sum_overflows() -> None:
    """Strict attention hides the row; the exact sum is a number, and 0 times NaN is NaN."""

    def bound(mask: str) -> Array:
        *_, last = expected(notation.trace("growing", "kv_heads=1", f"append 1 fill=even; attend 1 through {mask}"))
        assert last.outputs is not None
        return last.outputs.bound

    assert np.isposinf(bound("[-3e38 0] & [-3e38 0]")).all()
    assert np.isfinite(bound("[-1e30 0] & [-1e30 0]")).all()
    assert np.isfinite(bound("[-inf 0] & [-3e38 0]")).all(), "an array hides it"


def test_values_that_are_alike_are_known_whatever_their_weights() -> None:
    values = F32([[0.1, 1], [0.1, 1], [0.1, 2]])
    output, bound = Case(F32([1e6, 1e6]), F32([[1e6, -1e6]] * 3), values, F32([0, -1, -2]), "f32").bound
    assert output[0] == values[0, 0] and bound[0] < 1e-6
    assert np.isposinf(bound[1])


def test_the_bound_is_never_nan() -> None:
    rng = np.random.default_rng(6)
    numbers = F32([0, 1, -1, 1e-45, 3e-39, 1e6, -1e6, 1e18, 8e37, -3e38, np.inf, np.nan])
    shares = np.array([30, 20, 20, 5, 5, 10, 10, 2, 1, 1, 0.2, 0.2])
    said = 0
    for _ in range(3000):
        rows, dim = rng.integers(1, 4, 2)
        made = (
            rng.choice(numbers, size, p=shares / shares.sum())
            for size in ((dim,), (rows, dim), (rows, 2), (2, rows))
        )
        _, bound = Case(*made, str(rng.choice(list(DTYPES)))).bound
        assert not np.isnan(bound).any()
        said += np.isfinite(bound).all()
    assert said > 1000


def judged(bound: float) -> bool:
    """Whether an output of 2 passes for one of 1 that has such a bound."""
    middle = np.ones((1, 1, 1, 1))
    op: Operation = {"op": "attend", "n": 1}
    want = Expected("ok", outputs=Output(middle, np.full_like(middle, bound), 0 * middle))
    return not Judge(SerialBook(), ("history",)).compare(
        op, want, Step("ok", arrays={"output": F32(middle * 2)}), True
    )


def test_only_an_infinite_bound_says_nothing() -> None:
    assert judged(np.inf) and judged(1.5)
    assert not judged(0.5) and not judged(np.nan)


def shown(middle: float, bound: float, fewer: float) -> bool:
    """Whether agreeing with such outputs shows anything."""
    outputs = Output(*(np.full((1, 1, 1, 2), x) for x in (middle, bound, fewer)))
    return visible.shown_by_bounds(Expected("ok", outputs=outputs))["output"]


def test_nothing_is_shown_where_wrong_answers_agree() -> None:
    assert shown(1, 0.5, 2) and shown(-1, 0.01, 0)
    assert not shown(1, 1.5, 3), "zeros, and twice the output"
    assert not shown(1, 0.5, 1.4), "one row fewer"
    assert not shown(1, np.inf, 2) and not shown(np.nan, np.inf, np.nan)
    assert shown(0, 0, 0), "a query that sees nothing: only zeros are right"


def test_one_row_is_itself_but_for_roundings() -> None:
    for dtype, how in ((d, h) for d in DTYPES for h in HOW if h != "tiny"):
        c = next(c for c in (case(seed, how, dtype) for seed in range(99)) if len(c.keys) == 1)
        output, bound = c.bound
        assert (output == c.values[0]).all()
        assert (
            bound <= (2.1 * UNIT[dtype] + 12 * U) * np.abs(output) + LOST[dtype] * (1 + 3 * np.abs(output))
        ).all()


def test_nothing_is_said_of_what_is_not_finite() -> None:
    c = case(3, "plain", "f32")
    far = np.full_like(c.values, 3e38)
    for query, values in ((c.query * F32(np.inf), c.values), (c.query * F32(np.nan), c.values), (c.query, far)):
        assert np.isinf(c._replace(query=query, values=values).bound[1]).all()
    assert np.isinf(c._replace(query=c.query * F32(2.0**124)).bound[1]).all()
    scaled = Case(F32([3e38]), F32([[1e-30], [0]]), F32([[1], [2]]), F32([0, 0]), "f32")
    assert np.isnan(strictly(scaled)).all() and np.isinf(scaled.bound[1]).all(), (
        "a query that overflows as it is scaled"
    )
    assert np.isfinite(c.bound[1]).all()


def test_a_row_that_outweighs_all_others_leaves_no_room() -> None:
    """Scores so large that each is off by many units: what is left is the largest, and that is known."""
    c = Case(F32([2.0**60]), F32([[1.0], [0.5]]), F32([[3.0], [-7.0]]), F32([0, 0]), "f32")
    output, bound = c.bound
    assert output[0] == 3 and bound[0] < 1e-5


def test_the_units_are_half_a_digit() -> None:
    for dtype, unit in UNIT.items():
        assert float(ml_dtypes.finfo(DTYPES[dtype]).eps) / 2 == unit
