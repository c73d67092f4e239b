"""Cosines and sines of the angles of RoPE, each the f32 number nearest to the exact one.

An angle is position * base^(-2i/dims). All its digits matter, and at a far position more of them lie before the
point. So everything here is computed in decimal numbers of `DIGITS` digits. The angle of a 64-bit position keeps
more than 40 digits behind the point. No known cosine or sine lies so near the middle of two f32 numbers that 40
digits do not tell on which side.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import TypeVar

import numpy as np

Number = TypeVar("Number", float, Decimal)

DIGITS = 70
"""Decimal digits of every number."""

EXACT = Context(prec=DIGITS)
"""Where all of it is computed."""


@lru_cache(maxsize=4096)
def frequency(pair: int, dims: int, base: int | Decimal) -> Decimal:
    """base^(-2i/dims), the angle by which pair i turns from one position to the next, where nothing scales it."""
    with localcontext(EXACT):
        return (_logarithm(base) * Decimal(-2 * pair) / Decimal(dims)).exp()


@lru_cache(maxsize=64)
def _logarithm(base: int | Decimal) -> Decimal:
    return Decimal(base).ln()


@lru_cache(maxsize=1)
def quarter() -> Decimal:
    """Pi / 2, by pi / 4 = 4 arctan(1/5) - arctan(1/239) (Machin)."""
    with localcontext(EXACT):
        return 2 * (4 * _arctan_of_one_by(5) - _arctan_of_one_by(239))


def _arctan_of_one_by(x: int) -> Decimal:
    return sum((Decimal((-1) ** k) / ((2 * k + 1) * x ** (2 * k + 1)) for k in range(DIGITS)), Decimal(0))


@lru_cache(maxsize=1 << 16)
def cosine_and_sine(position: int, frequency: Decimal, factor: Decimal) -> tuple[np.float32, np.float32]:
    """Give cosine and sine of position * frequency, both times the factor."""
    with localcontext(EXACT):
        angle = position * frequency
        turns = (angle / quarter()).to_integral_value()
        rest, quarters = angle - turns * quarter(), int(turns % 4) % 4
        cos, sin = (x * float(factor) for x in _turned(math.cos(rest), math.sin(rest), quarters))
        if decided(cos) and decided(sin):
            return np.float32(cos), np.float32(sin)
        cosine, sine = _turned(*_series(rest), quarters)
        return nearest(cosine * factor), nearest(sine * factor)


def decided(x: float) -> bool:
    """Whether every number near an f64 number is rounded to the same f32 number. The C library's cosine and sine of
    a rounded angle of at most pi / 4, times a rounded factor, are within 4 units in the last place of f64. This
    allows 64."""
    return bool(np.float32(x * (1 - 2.0**-46)) == np.float32(x * (1 + 2.0**-46)))


def _turned(cos: Number, sin: Number, quarters: int) -> tuple[Number, Number]:
    """Cosine and sine of an angle, turned on by so many quarter turns."""
    for _ in range(quarters):
        cos, sin = -sin, cos
    return cos, sin


def _series(x: Decimal) -> tuple[Decimal, Decimal]:
    """Cosine and sine of an angle of at most pi / 4. The series ends where the next term would change nothing."""
    found, term = [Decimal(0), Decimal(0)], Decimal(1)
    for k in range(DIGITS):
        before, found[k % 2] = found[k % 2], found[k % 2] + term
        if found[k % 2] == before:
            break
        term *= (-x if k % 2 else x) / (k + 1)
    return found[0], found[1]


def nearest(x: Decimal) -> np.float32:
    """The nearest f32 number, found through f64. If the f64 number is halfway between two f32 numbers, x
    decides."""
    wide = float(x)
    if np.float64(wide).view(np.int64) & ((1 << 29) - 1) == 1 << 28:
        wide = float(np.nextafter(wide, np.inf if x > Decimal(wide) else -np.inf))
    return np.float32(wide)
