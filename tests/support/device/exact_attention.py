"""Strict attention as the chapter's text has it: one number after another, fma by fractions. Slow, and simple."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kvspec.geometry import Array

getcontext().prec = 60
INF = math.inf
F32 = np.float32


def nearest(x: Fraction, negative: bool = False) -> float:
    """The f32 number nearest to x, ties to even; a zero is negative where that is said."""
    if x == 0:
        return -0.0 if negative else 0.0
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    ulp = Fraction(2) ** (max(exponent, -126) - 23)
    found = float(round(size / ulp) * ulp)
    found = found if found < 2.0**128 else INF
    return -found if x < 0 else found


def fma(a: float, b: float, c: float) -> float:
    """a * b + c, rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    signs = math.copysign(1, a) * math.copysign(1, b), math.copysign(1, c)
    return nearest(exact, signs == (-1, -1))


def rounded(x: float) -> float:
    """To f32, of one operation on f32 numbers that was exact in f64 or close enough."""
    with np.errstate(all="ignore"):
        return float(F32(x))


def power(x: float) -> Decimal:
    """2^x to 50 digits."""
    return (Decimal(x) * Decimal(2).ln()).exp()


COEFFICIENTS = [math.log(2) ** i / math.factorial(i) for i in range(6, -1, -1)]
LOG2E = float(F32(math.log2(math.e)))


def exp2(x: float) -> float:
    """As the chapter has it."""
    if math.isnan(x):
        return x
    if x < -125:
        return 0.0
    r = rounded(rounded(x + 12582912) - 12582912)
    y = rounded(COEFFICIENTS[0])
    for next_ in COEFFICIENTS[1:]:
        y = fma(y, x - r, rounded(next_))
    return y * 2.0**r


def larger(a: float, b: float) -> float:
    """NaN where one is."""
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def below(x: float, m: float) -> float:
    """x - m."""
    return -INF if x == -INF else rounded(x - m)


class Part(NamedTuple):
    """m, l and a of the chapter."""

    m: float
    sum: float
    values: list[float]


def merged(one: Part, two: Part) -> Part:
    """Step 6."""
    if two.m == -INF:
        return one
    m = larger(one.m, two.m)
    w1, w2 = exp2(below(one.m, m)), exp2(below(two.m, m))
    values = [fma(w2, b, rounded(w1 * a)) for a, b in zip(one.values, two.values, strict=True)]
    return Part(m, fma(w2, two.sum, rounded(w1 * one.sum)), values)


def tree(weights: list[float]) -> float:
    """Step 4."""
    while len(weights) > 1:
        half = len(weights) // 2
        weights = [rounded(weights[i] + weights[i + half]) for i in range(half)]
    return weights[0]


Row = tuple[list[float], list[float], float]
"""Key, value, and what the mask adds; minus infinity where the row is not seen."""


def tile(query: list[float], rows: dict[int, Row], width: int) -> Part:
    """Steps 2 to 5, of the rows of one tile by their places in it."""
    scores = dict.fromkeys(range(32), -INF)
    for place, (key, _, added) in rows.items():
        if added != -INF:
            s = 0.0
            for k, q in zip(key, query, strict=True):
                s = fma(k, q, s)
            scores[place] = fma(added, LOG2E, s) if added else s
    m = -INF
    for s in scores.values():
        m = larger(m, s)
    if m == -INF:
        return Part(m, 0.0, [0.0] * width)
    weights = [exp2(below(scores[i], m)) for i in range(32)]
    values = [0.0] * width
    for place in sorted(rows):
        if scores[place] != -INF:
            values = [fma(weights[place], v, a) for v, a in zip(rows[place][1], values, strict=True)]
    return Part(m, tree(list(weights)), values)


def attend(query: Array, rows: dict[int, Row], low: int, high: int, splits: int, width: int) -> list[float]:
    """One output: of a query over rows by their positions, whose tiles are those of positions low to high - 1."""
    scale = float(F32(1.4426950408889634 / math.sqrt(len(query))))
    scaled = [rounded(float(q) * scale) for q in query]
    empty = Part(-INF, 0.0, [0.0] * width)
    begin, end = low // 32, -(-high // 32)
    each, whole = max(1, -(-(end - begin) // splits)), empty
    for first in range(begin, end, each):
        part = empty
        for t in range(first, min(first + each, end)):
            part = merged(part, tile(scaled, {p - 32 * t: r for p, r in rows.items() if p // 32 == t}, width))
        whole = merged(whole, part)
    if whole.m == -INF:
        return [0.0] * width
    with np.errstate(all="ignore"):
        return [float(F32(np.float64(a) / np.float64(whole.sum))) for a in whole.values]
