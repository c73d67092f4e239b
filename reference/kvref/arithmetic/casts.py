"""Casts of f32 to the narrower dtypes, by the rule: to the nearest number of the dtype, ties to even."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvref.cite import cite
from kvspec.geometry import DTYPES, Array


class Format(NamedTuple):
    """Each number of a dtype is a whole number of at most `digits` binary digits, times a power of two."""

    digits: int
    """Binary digits of a number, the leading one included."""
    least: int
    """The exponent of the smallest normal numbers: the smallest is 2**(least - 1)."""
    largest: float
    """The largest finite number."""


FORMATS = {
    "f16": Format(11, -13, 65504.0),
    "bf16": Format(8, -125, float.fromhex("0x1.fep127")),
}


def narrows(source: str, target: str) -> bool:
    """Whether a copy may take rows of this dtype into a buffer of that one."""
    return source == target or (source == "f32" and target in FORMATS)


def narrowed(array: Array, dtype: str) -> Array:
    """f32 values, each rounded once. In f64 all of this is exact except `rint`, which is the rounding."""
    to = FORMATS[dtype]
    with np.errstate(invalid="ignore"):
        x = array.astype(np.float64)
        _, exponent = np.frexp(x)
        spacing = np.exp2(np.maximum(exponent, to.least) - to.digits)
        rounded = np.rint(x / spacing) * spacing
        beyond = np.abs(rounded) > to.largest
        made: Array = np.where(beyond, np.copysign(np.inf, x), rounded).astype(DTYPES[dtype])
    _cite(x, beyond, small=np.abs(x) < 2.0 ** (to.least - 1))
    return made


def _cite(x: Array, beyond: Array, small: Array) -> None:
    cite("COPY-12")
    if beyond.any():
        cite("COPY-13")
    if np.isnan(x).any():
        cite("COPY-14")
    if small.any():
        cite("COPY-15")
