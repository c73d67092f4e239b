"""Strict attention against exact arithmetic: fma and exp2 by themselves, and the whole as the chapter has it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kvref.arithmetic import strict_attention
from kvref.arithmetic.strict_attention import Asked
from kvspec.geometry import Array
from kvspec.reading.clauses import chapter_text
from support.device import exact_attention as exact

TINY = 2.0**-149


def adversarial() -> Iterator[tuple[float, float, float]]:
    """Sums that lie next to halfway, among subnormal numbers, at the largest, or cancel."""
    rng = np.random.default_rng(7)
    for _ in range(4000):
        a, b = (float(np.float32(x)) for x in rng.standard_normal(2))
        near = float(np.float32(-a * b))
        yield a, b, near
        # half of the last digit of c, and so little less of it that f64 rounds it back to a half
        c = float(np.float32(rng.standard_normal() * 2.0 ** int(rng.integers(0, 60))))
        yield a, b, c
        half = math.ulp(np.float32(c).astype(np.float64)) * 2.0**28
        less = 2.0 ** -int(rng.integers(15, 24))
        yield half * (1 + less), 1 - less, c
        yield half * (1 + less), less - 1, c
    for i in (*range(1, 3000, 7), *range(715, 735), *range(2840, 2860)):
        for j in (i - 1, i):  # at 1 and half a digit, or a few of the last digits of f64 from there
            yield 1 + i * 2.0**-23, 2.0**-24 * (1 - j * 2.0**-23), 1.0
            yield 1 + i * 2.0**-23, 2.0**-24 * (1 - j * 2.0**-23), 1 + 2.0**-23
        yield 1 + 2.0**-12, 1 + 2.0**-12, (-1.0) ** i * 2.0 ** -(54 + i % 90)
        yield -1 - 2.0**-12, 1 + 2.0**-12, (-1.0) ** i * 2.0 ** -(54 + i % 90)
    for _ in range(4000):
        a = float(np.float32(rng.standard_normal() * 2.0 ** int(rng.integers(-90, -50))))
        b = float(np.float32(rng.standard_normal() * 2.0 ** int(rng.integers(-90, -50))))
        yield a, b, TINY * int(rng.integers(-9, 10))
        yield a, b, float(np.float32(rng.standard_normal() * 2.0**-127))
        less = 2.0 ** -int(rng.integers(15, 24))
        yield 2.0**-75 * (1 + less), 2.0**-75 * (1 - less), TINY * int(rng.integers(1 << 20, 1 << 23))
    largest = float(np.finfo(np.float32).max)
    for a in (largest, -largest, 2.0**127, 1.0, TINY, -TINY, 0.0, -0.0, 1 + 2.0**-23):
        for b in (1.0, -1.0, 2.0**-24, 1 + 2.0**-23, TINY, -0.0, 0.5, largest):
            for c in (largest, -largest, 0.0, -0.0, TINY, 2.0**-126, 1.0, -(2.0**103)):
                yield a, b, c


def one_by_one(module: Any) -> Array:
    """Each of the sums by itself, so that none is looked at more closely for the sake of another."""
    return np.array([module.fma(*(np.array(x) for x in case)) for case in adversarial()])


def together(module: Any) -> Array:
    """All of the sums, looked at as closely as the worst of them needs."""
    found: Array = module.fma(*(np.array(x) for x in zip(*adversarial(), strict=True)))
    return found


def of_four_tiles(module: Any) -> Array:
    """An output of which nobody said how many splits."""
    rng = np.random.default_rng(12)
    queries, keys, values = (np.float32(rng.standard_normal((1, 1, n, 4))) for n in (1, 128, 128))
    found: Array = module.attend(
        queries, keys, values, 0, Asked(np.zeros((1, 1, 1, 128)), np.array([0]), np.array([128]))
    )
    return found


@pytest.mark.parametrize("sums", [one_by_one, together])
def test_fma_rounds_once(sums: Any) -> None:
    cases = list(adversarial())
    with np.errstate(all="ignore"):
        found = [float(x) for x in sums(strict_attention)]
    wanted = [exact.fma(*case) for case in cases]
    wrong = [
        (case, w, f)
        for case, w, f in zip(cases, wanted, found, strict=True)
        if (w, math.copysign(1, w)) != (f, math.copysign(1, f))
    ]
    assert not wrong, wrong[:3]


def test_the_cases_hold_sums_that_rounding_twice_gets_wrong() -> None:
    """Else the test above could not fail."""
    a, b, c = (np.array(x) for x in zip(*adversarial(), strict=True))
    with np.errstate(all="ignore"):
        twice, once = (a * b + c).astype(np.float32), strict_attention.fma(a, b, c)
    normal = (np.abs(once) >= 2.0**-126) & np.isfinite(once)
    assert ((twice != once) & normal).sum() > 50
    assert ((twice != once) & ~normal & np.isfinite(once)).sum() > 5


def test_fma_of_infinities_and_nan_beside_subnormal_sums() -> None:
    """What is found of one element does not depend on what lies beside it."""
    a, b, c = (np.array(x) for x in zip(*adversarial(), strict=True))
    odd = np.array([[math.inf, 0.0, 1.0], [math.nan, 1.0, 1.0], [math.inf, 1.0, -math.inf], [1.0, -math.inf, 2.0]])
    with np.errstate(all="ignore"):
        alone = strict_attention.fma(a, b, c)
        beside = strict_attention.fma(*(np.concatenate([x, o]) for x, o in zip((a, b, c), odd.T, strict=True)))
    assert alone.tobytes() == beside[: len(a)].tobytes()
    assert np.isnan(beside[len(a) :]).tolist() == [True, True, True, False] and beside[-1] == -math.inf


def powers() -> Array:
    rng = np.random.default_rng(3)
    near = [
        np.nextafter(np.float32(n + h), np.float32(s), dtype=np.float32)
        for n in range(-125, 1)
        for h in (0, 0.5)
        for s in (-200, 9)
    ]
    found = np.concatenate(
        [rng.uniform(-125, 0, 3000), -(2.0 ** rng.uniform(-149, 6.9, 2000)), near, -np.arange(126.0)]
    )
    return np.asarray(np.float32(found[found <= 0]), np.float64)


def test_exp2_is_within_four_units_of_2_to_the_minus_24() -> None:
    x = powers()
    x = x[x >= -125]
    errors = [
        abs(Decimal(float(y)) / exact.power(float(p)) - 1) for p, y in zip(x, strict_attention.exp2(x), strict=True)
    ]
    assert max(errors) <= Decimal(4) / 2**24
    worst = float(np.float32(-0.4999736))
    most = abs(Decimal(float(strict_attention.exp2(np.array([worst]))[0])) / exact.power(worst) - 1)
    assert max(errors) <= most and round(most * 2**24, 4) == Decimal("3.7728"), "as the chapter says"


def test_exp2_is_what_the_chapter_says_to_the_bit() -> None:
    x = powers()
    assert [exact.exp2(float(p)) for p in x] == strict_attention.exp2(x).tolist()


def test_exp2_at_its_ends() -> None:
    last = float(np.nextafter(np.float32(-125), np.float32(-200)))
    found = strict_attention.exp2(np.array([0.0, -0.0, -1.0, -125.0, last, -math.inf, math.nan]))
    assert found[:6].tolist() == [1.0, 1.0, 0.5, 2.0**-125, 0.0, 0.0] and math.isnan(found[6])
    assert all(exact.nearest(Fraction(float(y))) == y for y in strict_attention.exp2(powers()))


def test_the_tree_adds_the_halves() -> None:
    rng = np.random.default_rng(5)
    x = np.float32(rng.standard_normal((50, 32)) * 2.0 ** rng.integers(-30, 30, (50, 32))).astype(np.float64)
    assert strict_attention.tree(x).tolist() == [exact.tree(list(row)) for row in x]


def draw(rng: np.random.Generator) -> tuple[Array, Array, Array, int, Asked, int]:
    """Queries over rows of any numbers, through any mask."""
    batch, kv_heads, group, n = (int(rng.integers(1, m)) for m in (3, 3, 3, 4))
    rows, first, dim, width = int(rng.integers(n, 60)), int(rng.integers(0, 70)), int(rng.integers(1, 6)), 2
    queries = np.float32(rng.standard_normal((batch, kv_heads * group, n, dim)) * 10.0 ** rng.integers(-12, 13))
    keys, values = (rng.standard_normal((batch, kv_heads, rows, d)).astype(np.float32) for d in (dim, width))
    if rng.random() < 0.4:
        for array in (keys, values):
            odd = rng.random(array.shape) < 0.1
            array.view(np.uint32)[odd] = rng.integers(0, 2**32, int(odd.sum()), dtype=np.uint32)
    if rng.random() < 0.3:
        values *= np.float32(2.0 ** int(rng.integers(-149, -120)))  # sums of these need more digits than f64 has
    end = first + rows
    position, column = np.arange(end - n, end)[:, None], np.arange(first, end)
    window = int(rng.choice((1, 3, 32, 40, 200)))
    low = np.maximum(0, position[:, 0] - window + 1)
    added = np.float32(rng.integers(-40, 40, (batch, kv_heads * group, n, rows)) / 8) * (rng.random() < 0.5)
    hidden = (
        (rng.random(added.shape) < rng.choice((0.0, 0.3, 0.97))) | (column > position) | (column < low[:, None])
    )
    return (
        queries,
        keys,
        values,
        first,
        Asked(np.where(hidden, -np.inf, added), low, position[:, 0] + 1),
        int(rng.integers(1, 5)),
    )


@pytest.mark.parametrize("seed", range(40))
def test_attention_is_what_the_chapter_says_to_the_bit(seed: int) -> None:
    queries, keys, values, first, asked, splits = draw(np.random.default_rng(seed))
    found = strict_attention.attend(queries, keys, values, first, asked, splits)
    group = queries.shape[1] // keys.shape[1]
    for b, h, i in np.ndindex(queries.shape[:3]):
        rows = {
            first + j: (
                [float(x) for x in keys[b, h // group, j]],
                [float(x) for x in values[b, h // group, j]],
                float(asked.added[b, h, i, j]),
            )
            for j in range(keys.shape[2])
        }
        wanted = exact.attend(
            queries[b, h, i], rows, int(asked.low[i]), int(asked.high[i]), splits, values.shape[3]
        )
        alike = [
            (w == f and math.copysign(1, w) == math.copysign(1, f)) or (math.isnan(w) and math.isnan(f))
            for w, f in zip(wanted, found[b, h, i].tolist(), strict=True)
        ]
        assert all(alike), (wanted, found[b, h, i])


def test_the_chapters_numbers() -> None:
    """The worked example, computed from its first line on; every number of it stands in the chapter."""
    queries = np.float32([1, 0, 2, 0])
    keys, values = np.float32([[1, 0, 0, 1], [1, 0, 0.5, 0], [0, 1, -1, 0]]), np.float32([[3], [5], [-2]])
    scaled = [float(np.float32(q * strict_attention.scale(4))) for q in queries]
    rows = {31 + j: ([float(x) for x in keys[j]], [float(values[j, 0])], 0.0) for j in range(3)}
    tiles = [exact.tile(scaled, {p - 32 * t: r for p, r in rows.items() if p // 32 == t}, 1) for t in (0, 1)]
    whole = exact.merged(*tiles)
    out = strict_attention.attend(
        queries[None, None, None],
        keys[None, None],
        values[None, None],
        31,
        Asked(np.zeros((1, 1, 1, 3)), np.array([0]), np.array([34])),
    )
    text = chapter_text("attention")
    shown = [scaled[0], tiles[1].sum, tiles[1].values[0], whole.sum, whole.values[0], float(out.ravel()[0])]
    for number in shown:
        assert f"{number:.9g} = {hexadecimal(number)}" in text, number
    assert float(out.ravel()[0]) == exact.attend(queries, rows, 0, 34, 1, 1)[0]
    for c in strict_attention.COEFFICIENTS:
        assert hexadecimal(float(c)) in text or c == 1


def hexadecimal(x: float) -> str:
    """As the chapter writes it: six digits, as many as f32 has."""
    head, _, exponent = x.hex().removeprefix("0x").partition("p")
    return f"{head[:8]}p{exponent}"


def test_storage_block_and_batch_do_not_change_a_bit() -> None:
    rng = np.random.default_rng(11)
    queries, (keys, values) = (
        np.float32(rng.standard_normal((2, 4, 5, 8))),
        np.float32(rng.standard_normal((2, 2, 2, 90, 8))),
    )
    position, column = np.arange(85, 90)[:, None], np.arange(90)
    added = np.broadcast_to(np.where((column > position) | (column <= position - 40), -np.inf, 0.0), (2, 4, 5, 90))
    low, high = position[:, 0] - 39, position[:, 0] + 1
    whole = strict_attention.attend(queries, keys, values, 0, Asked(added, low, high), 2)
    cut = strict_attention.attend(
        queries, keys[:, :, 40:], values[:, :, 40:], 40, Asked(added[..., 40:], low, high), 2
    )
    assert whole.tobytes() == cut.tobytes()
    for b, h, i in np.ndindex(2, 4, 5):
        one = Asked(added[b : b + 1, h : h + 1, i : i + 1], low[i : i + 1], high[i : i + 1])
        kv = slice(h // 2, h // 2 + 1)
        alone = strict_attention.attend(
            queries[b : b + 1, h : h + 1, i : i + 1], keys[b : b + 1, kv], values[b : b + 1, kv], 0, one, 2
        )
        assert alone.tobytes() == whole[b, h, i].tobytes()


def test_four_thousand_rows_take_less_than_half_a_second() -> None:
    rng = np.random.default_rng(1)
    queries = np.float32(rng.standard_normal((1, 8, 1, 128)))
    keys, values = np.float32(rng.standard_normal((2, 1, 2, 4096, 128)))
    asked = Asked(np.zeros((1, 8, 1, 4096)), np.array([0]), np.array([4096]))
    taken = []
    for _ in range(3):
        begun = time.process_time()
        strict_attention.attend(queries, keys, values, 0, asked)
        taken.append(time.process_time() - begun)
    assert min(taken) < 0.5
