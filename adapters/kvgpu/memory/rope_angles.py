"""Tables of RoPE, made on the host: the f32 numbers nearest to cosine and sine of position * frequency.

An angle is a whole number of 2^-192 turns. It is one product of position and frequency, and whole turns are
dropped exactly, also at large positions. The nearest quarter of a turn is subtracted exactly too. The rest, which
may be very small, becomes an f64 number, so that cosine and sine are right to a few units in the last place of
f64. About one in two million of them lies too near the midpoint of two f32 numbers to say which is nearest. It is
computed again in whole numbers.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

import numpy as np

from kvgpu.memory.rope_scaling import DIGITS, PI, attention_factor, frequencies
from kvspec.geometry import Array
from kvspec.rope.scaling import LongRoPE, Scaling

LIMB = 32
"""Bits of a limb: the product of two limbs fits into 64 bits."""

DOUBT = 1 << 8
"""An f64 number nearer than this to the midpoint of two f32 numbers is computed again; in units in the last place
of f64."""


@lru_cache(maxsize=64)
def _limbs(dims: int, base: int, scaling: Scaling | None, far: bool) -> Array:
    """Give the frequencies `[limbs, pairs]`, the least digits first."""
    numbers, mask = frequencies(dims, base, scaling, far), (1 << LIMB) - 1
    return np.array([[f >> k & mask for f in numbers] for k in range(0, DIGITS, LIMB)], np.uint64)


def table(positions: Array, dims: int, base: int, scaling: Scaling | None = None) -> Array:
    """Compute cosine and sine `[n, dims / 2, 2]` in f32 of each pair at each position, `[n]` in i64."""
    far = positions >= scaling.original if isinstance(scaling, LongRoPE) else np.zeros(len(positions), np.bool_)
    made = np.empty((len(positions), dims // 2, 2), np.float32)
    for there in map(bool, np.unique(far)):
        made[far == there] = _table(positions[far == there], dims, base, scaling, there)
    return made


def _table(positions: Array, dims: int, base: int, scaling: Scaling | None, far: bool) -> Array:
    above, below = _fractions(np.abs(positions).astype(np.uint64), _limbs(dims, base, scaling, far))
    quarter = (above + np.uint64(1 << 61)) >> np.uint64(62)
    x = _radians((above - (quarter << np.uint64(62))).view(np.int64), below)
    cos, sin, way = np.cos(x), np.sin(x), np.sign(positions)[:, None]
    found = np.stack([_choose(quarter, cos, -sin, -cos, sin), _choose(quarter, sin, cos, -sin, -cos) * way], -1)
    factor = attention_factor(scaling)
    found *= float(factor)
    made = found.astype(np.float32)
    for t, i, which in zip(*np.nonzero(_doubtful(found)), strict=True):
        turns = int(positions[t]) * frequencies(dims, base, scaling, far)[i]
        made[t, i, which] = _surely(turns, int(which), factor)
    return made


def _fractions(positions: Array, limbs: Array) -> tuple[Array, Array]:
    """Give the products `[n, pairs]` without whole turns: the first 64 digits behind the point, and the next 64."""
    mask, shift = np.uint64((1 << LIMB) - 1), np.uint64(LIMB)
    halves = positions[:, None] & mask, positions[:, None] >> shift
    columns = [np.zeros((len(positions), limbs.shape[1]), np.uint64) for _ in range(len(limbs) + 2)]
    for a, half in enumerate(halves):
        for b, limb in enumerate(limbs):
            product = half * limb
            columns[a + b] += product & mask
            columns[a + b + 1] += product >> shift
    for low, high in pairwise(columns):
        high += low >> shift
        low &= mask
    last = len(limbs) - 1
    return columns[last] << shift | columns[last - 1], columns[last - 2] << shift | columns[last - 3]


def _radians(above: Array, below: Array) -> Array:
    """Convert at most an eighth of a turn to radians, given its first 64 digits, signed, and the next 64."""
    return 2 * np.pi * (above * 2.0**-64 + below * 2.0**-128)


def _choose(quarter: Array, *of: Array) -> Array:
    """Choose one of four by the number of quarter turns."""
    return np.asarray(np.choose((quarter & np.uint64(3)).astype(np.int64), of))


def _doubtful(found: Array) -> Array:
    """Tell whether an f64 number is too near the midpoint of two f32 numbers to tell which one it rounds to."""
    digits = found.view(np.int64) & ((1 << 29) - 1)
    return np.asarray(np.abs(digits - (1 << 28)) <= DOUBT)


def _surely(turns: int, which: int, factor: Decimal) -> np.float32:
    """Compute cosine (0) or sine (1) of an angle, in units of 2^-192 turns, by its series in whole numbers; times
    the factor, round once."""
    one = 1 << DIGITS
    angle = turns % one * 2 * int(Decimal(PI).scaleb(60)) // 10**60
    term, found, k = one, 0, 0
    while term:
        if k % 2 == which:
            found += term if k % 4 < 2 else -term
        k, term = k + 1, term * angle // (one * (k + 1))
    times, by = factor.as_integer_ratio()
    return np.float32(_to_odd(found * times // by))


def _to_odd(number: int) -> float:
    """Convert a number of 2^-192 to f64, rounded to odd, so that rounding it again equals rounding once."""
    size = max(0, abs(number).bit_length() - 53)
    digits = number >> size
    return float(digits | (digits << size != number)) * 2.0 ** (size - DIGITS)
