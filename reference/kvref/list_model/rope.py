"""RoPE in the list model: every pair turned in f64, and how far from that a result in f32 may be.

Let u = 2^-24, and w half a unit in the last place of the dtype (0 for f32, which is rounded no further). A pair
(a, b) turns by an angle t = position * base^(-2i/dims), or as a scaling has it, with an attention factor m.

- Cosine and sine, as f32 numbers of an angle in f64, are off by at most e = 2^-24 + `FAR` |t|. The frequency, the
  position and their product are computed in f64, there and here. Where a claim declares angles in f32,
  `off_in_f32` is added. A scaling makes both `spread` times as large. An m other than 1 is rounded and multiplied:
  2 u more.
- Two products and a sum, in any order, contracted or not, add at most 3 u (1 + e) m (|a| + |b|).
- What the pair itself may be off by is turned with it.
- The result y is rounded to the dtype: w |y|, and half the least number there is, or what f32 may flush.

Where a result may be beyond the largest number of the dtype, and in a pair with NaN or an infinity, there is no
bound. At position 0 without m, and from the element `dims` on, nothing is turned, and nothing may be off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvref.cite import cite
from kvref.list_model import rope_scaling
from kvref.list_model.rows import Rows, U
from kvspec.contract.attention import Rope
from kvspec.errors import Refused
from kvspec.geometry import Array

ROUNDED = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of rounding an f32 number to a dtype."""

LOST = {"f32": 2.0**-125, "f16": 2.0**-24, "bf16": 2.0**-125}
"""What may be lost of a result because it, or a product on the way to it, is too small."""

FAR = 2.0**-46
"""Largest relative difference of two angles in f64 that are computed in different ways. The chapter ROPE has it in
units of 2^-53, for bases up to 2^31: 90 for an exponential of a logarithm there, 26 for the power here."""


class Declared(NamedTuple):
    """What an adapter declares of its RoPE: see the dialects of the chapter."""

    angles: str = "f64"
    long: str = "row"


USUAL = Declared()
"""What is not declared."""


def off_in_f32(angle: Array, pair: int, dims: int, base: float, spread: float = 1) -> Array:
    """How much further cosines and sines may be off where all is computed in f32: ROPE derives it.

    The digits of the exponent count as often as it is large; a running product adds 3 units a pair. Cosine and sine
    are within 4. `spread`: what a scaling makes of these.
    """
    units = 4 * (2 * pair / dims) * np.log(base) + 3 * pair + 5
    return np.asarray((4 + spread * units * np.abs(angle)) * U)


LARGEST = {"f32": 2.0**127, "f16": 65504.0, "bf16": 2.0**127}
"""Results up to this are certain not to overflow on the way."""


class Turned(NamedTuple):
    """What rows should be, how far off they may be (both f64; infinite if there is no bound), and their dtype."""

    middle: Array
    bound: Array
    dtype: str


def rotate(rows: Rows | Turned | None, positions: Array, rope: Rope, declared: Declared = USUAL) -> Turned | None:
    """Rows `[B, H, n, dim]` turned each by its position, `[n]`, or its three, `[3, n]`, by angles in f64 or f32.
    Rows that were turned before may be turned again. None where no arrays were made."""
    if rows is None or isinstance(rows, Turned):
        return rows and _unless_empty(rows, positions, rope, declared)
    cite("ROPE-9")
    if 0 in rows.shape:
        cite("ROPE-10")
    else:
        demand(rows.shape, positions, rope)
        cite_turned(rows, positions, rope)
    return None if rows.array is None else _unless_empty(exactly(rows.array, rows.dtype), positions, rope, declared)


def _unless_empty(rows: Turned, positions: Array, rope: Rope, declared: Declared) -> Turned:
    return turned(rows, positions, rope, declared) if rows.middle.size else rows


def demand(shape: tuple[int, ...], positions: Array, rope: Rope) -> None:
    """Refuse rows of a shape that cannot be turned."""
    if positions.shape != (shape[2:3] if rope.sections is None else (3, shape[2])):
        raise Refused("ROPE-11", "other than one position for each row")
    if (shape[3] if rope.dims is None else rope.dims) not in range(2, shape[3] + 1, 2):
        raise Refused("ROPE-12", "elements that are no pairs of the row")
    if rope.base < 1:
        raise Refused("ROPE-13", "a base of no frequencies")
    dims = shape[3] if rope.dims is None else rope.dims
    rope_scaling.demand(rope, dims)
    if rope.sections and np.bincount(rope_scaling.axes(rope, dims), minlength=3).tolist() != [*rope.sections[:3]]:
        raise Refused("ROPE-45", "sections of other pairs")


def cite_turned(rows: Rows, positions: Array, rope: Rope) -> None:
    """Cite the clauses of every rotation, and those of this one's arguments."""
    cite("ROPE-8")
    if positions.any():  # at position 0 nothing is turned
        cite("ROPE-1" if rope.pairing == "norm" else "ROPE-2", rope_scaling.clause(rope.scaling), "ROPE-5")
    if rope.sections is not None and np.ptp(positions, axis=0).any():
        cite("ROPE-44" if rope.sections.interleaved else "ROPE-43")
    if rope.dims not in (None, rows.shape[3]):
        cite("ROPE-4")
    if rope_scaling.factor(rope.scaling) != 1:
        cite("ROPE-35")
    elif not np.atleast_2d(positions).any(0).all():
        cite("ROPE-6")
    if rows.fill == "bits":
        cite("ROPE-7")


def exactly(rows: Array, dtype: str) -> Turned:
    """Rows as they are."""
    with np.errstate(invalid="ignore"):
        wide = rows.astype(np.float64)
    return Turned(wide, np.zeros_like(wide), dtype)


def turned(given: Turned, positions: Array, rope: Rope, declared: Declared = USUAL) -> Turned:
    """Rows `[..., n, dim]` that may be off already, turned each by its position, `[n]`, or its three, `[3, n]`."""
    middle, bound, dims = given.middle.copy(), given.bound.copy(), rope.dims or given.middle.shape[-1]
    each = positions[:, None] if rope.sections is None else positions[rope_scaling.axes(rope, dims)].T
    angles = each * rope_scaling.frequencies(rope, dims, each, declared.long)
    m = rope_scaling.factor(rope.scaling)
    for i in range(dims // 2):
        at = [2 * i, 2 * i + 1] if rope.pairing == "norm" else [i, i + dims // 2]
        angle = angles[:, i]
        off = _angle_error(angle, i, dims, rope, declared.angles) + (0 if m == 1 else 2 * U)
        with np.errstate(all="ignore"):
            pair = given.middle[..., at], given.bound[..., at]
            middle[..., at], bound[..., at] = _pair(*pair, angle, off, given.dtype, m)
    return Turned(middle, bound, given.dtype)


def _angle_error(angle: Array, pair: int, dims: int, rope: Rope, angles: str) -> Array:
    """How far the cosine and the sine of an angle may be off, `[n]`."""
    spread = rope_scaling.spread(rope, dims)
    off: Array = U + spread * FAR * np.abs(angle)
    if angles == "f32":
        off = off + off_in_f32(angle, pair, dims, rope_scaling.base_of(rope, dims), spread)
    return off


def _pair(x: Array, off: Array, angle: Array, angle_error: Array, dtype: str, m: float) -> tuple[Array, Array]:
    """Pairs `[..., n, 2]` turned by angles `[n]`, whose cosines and sines may be off by `angle_error`, `[n]`, and
    made m times as long."""
    c, s = m * np.cos(angle), m * np.sin(angle)
    e = angle_error[:, None]
    y = np.stack([x[..., 0] * c - x[..., 1] * s, x[..., 0] * s + x[..., 1] * c], -1)
    c, s = np.abs(c), np.abs(s)
    before = np.stack([off[..., 0] * c + off[..., 1] * s, off[..., 0] * s + off[..., 1] * c], -1)
    size = m * (np.abs(x) + off).sum(-1, keepdims=True)
    error = before + size * (e + 3 * U * (1 + e))
    error = error + ROUNDED[dtype] * (np.abs(y) + error) + LOST[dtype]
    still = ((angle == 0) & (m == 1))[:, None]
    unsure = ~np.isfinite(x).all(-1, keepdims=True) | (~still & ~(size + error <= LARGEST[dtype]))
    return y, np.where(unsure, np.inf, np.where(still, off, error))
