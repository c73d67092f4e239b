"""Fingerprints: sums in f32, added in any order, and how far a correct sum may be from the exact one.

Let u = 2^-24. Then n - 1 additions of n numbers x, in any order, lie within (n - 1) u / (1 - (n - 1) u) times sum
|x| of the exact sum. The bound n u sum |x| is larger than that up to n = 4096. Up to 2^16, a hundredth more than
it is enough. Whole numbers are added exactly up to 2^24. Where sum |x| may leave the range of f32, an infinity on
the way depends on the order, so nothing is checked.
"""

from __future__ import annotations

import math

import numpy as np

from kvspec.geometry import Array

U = 2.0**-24
"""Largest relative error of one operation in f32."""

LARGEST = float(np.finfo(np.float32).max)

APART = " +- "


class Sum(float):
    """An exact sum, and the largest error of a correct f32 sum."""

    error: float = 0.0


def exact(row: Array) -> Sum:
    """Sum a row's elements exactly; round once, to a float."""
    numbers = [float(x) for x in row.astype(np.float32).ravel()]
    if not all(map(math.isfinite, numbers)):
        return Sum(sum(x for x in numbers if not math.isfinite(x)))
    found, size = Sum(math.fsum(numbers)), math.fsum(map(abs, numbers))
    whole = size <= 1 / U and all(x.is_integer() for x in numbers)
    found.error = 0.0 if whole else math.inf if size > LARGEST / 2 else len(numbers) * U * size
    return found


def text(found: float) -> str:
    """Write it as a step holds it: the number, then its largest error if the sum is not exact in f32. The error is
    rounded up to three digits, so that all fits into the 40 characters of a text on the wire."""
    error = getattr(found, "error", 0.0)
    return repr(float(found)) + (f"{APART}{1.01 * error:.2e}" if error else "")


def agree(wanted: str, found: object) -> bool:
    """Tell whether an observed sum is within the allowed error; ignore the error that it states itself."""
    try:
        number = float(str(found).partition(APART)[0])
    except ValueError:
        return False
    middle, _, error = wanted.partition(APART)
    if error == "inf" or (math.isnan(float(middle)) and math.isnan(number)):
        return True
    return number == float(middle) or abs(number - float(middle)) <= float(error or 0)
