"""RoPE, with every rounding fixed: it turns pairs of elements of a row like points of the plane.

A pair (x0, x1), at an angle whose cosine and sine are the f32 numbers c and s of `rope_angles`, becomes in f32

    y0 = fma(x0, c, -(x1 * s))
    y1 = fma(x0, s, x1 * c)

where a product by itself is rounded and `fma` rounds once; then both are rounded to the dtype of the rows. At
position 0 a row is left as it is. So the result depends on the elements of the pair and on the position of its row
alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvref.arithmetic import rope_angles as angles
from kvref.arithmetic.strict_attention import fma
from kvref.cite import cite
from kvref.memory import meter
from kvspec.contract import Rope
from kvspec.geometry import DTYPES, Array
from kvspec.refusals import rope as refusals


def rotate(rows: Array, positions: Array, rope: Rope) -> Array:
    """Rows `[B, H, n, dim]` turned each by its position, `[n]`: new rows of the same dtype, on the device where the
    rows are there."""
    if rows.size == 0:
        cite("ROPE-10")
        return rows.copy()
    made = _made(rows, positions, rope)
    return meter.moved(made) if isinstance(rows, meter.Resident) else made


def at_positions(asked: Rope | None, first: int, queries: Array, keys: Array) -> tuple[Array, Array]:
    """The queries and the new keys of an attend, each turned at its own position, those of the first row `first`;
    unchanged without RoPE."""
    if asked is None:
        return queries, keys
    positions = first + np.arange(keys.shape[2])
    cite("ROPE-19", "ROPE-21", "ROPE-22", "ROPE-23")
    return _inside(queries, positions, asked), _inside(keys, positions, asked)


def _inside(rows: Array, positions: Array, rope: Rope) -> Array:
    """Turn rows before they are written; on the device they get a place of their own."""
    made = _made(rows, positions, rope)
    if not isinstance(rows, meter.Resident):
        return made
    meter.meter.device_to_device += made.nbytes
    return meter.resident(made)


def _made(rows: Array, positions: Array, rope: Rope) -> Array:
    dims = demand(rows, positions, rope)
    _cite(rows, positions, rope, dims)
    return _turned(np.asarray(rows), positions, rope.pairing, dims, rope.base)


def demand(rows: Array, positions: Array, rope: Rope) -> int:
    """How many elements of a row are turned. Refuses what cannot be turned."""
    if rows.ndim != 4 or rows.dtype not in DTYPES.values() or positions.shape != rows.shape[2:3]:
        raise refusals.rows("ROPE-11", rows, positions)
    width = rows.shape[-1]
    dims = width if rope.dims is None else rope.dims
    if dims < 1 or dims > width or dims % 2:
        raise refusals.dims("ROPE-12", dims, width)
    if rope.base < 1:
        raise refusals.base("ROPE-13", rope.base)
    return dims


def _cite(rows: Array, positions: Array, rope: Rope, dims: int) -> None:
    """Cite the clauses of every rotation, and those of this one's arguments."""
    cite("ROPE-8", "ROPE-9")
    if positions.any():  # at position 0 nothing is turned
        cite("ROPE-1" if rope.pairing == "norm" else "ROPE-2", "ROPE-3", "ROPE-5", "ROPE-15", "ROPE-16", "ROPE-17")
    if dims < rows.shape[-1]:
        cite("ROPE-4", "ROPE-18")
    if (positions == 0).any():
        cite("ROPE-6", "ROPE-18")
    with np.errstate(invalid="ignore"):
        if not np.isfinite(rows).all():
            cite("ROPE-7")


def pairs(pairing: str, dims: int) -> tuple[slice, slice]:
    """The first elements of all pairs, and the second ones."""
    if pairing == "norm":
        return slice(0, dims, 2), slice(1, dims, 2)
    return slice(0, dims // 2), slice(dims // 2, dims)


def _turned(rows: Array, positions: Array, pairing: str, dims: int, base: int) -> Array:
    first, second = pairs(pairing, dims)
    c, s = (a.astype(np.float64) for a in angles.table(positions, dims, base))
    made = rows.copy()
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        x0, x1 = wide[..., first], wide[..., second]
        made[..., first] = _rounded(fma(x0, c, -_f32(x1 * s)), rows.dtype)
        made[..., second] = _rounded(fma(x0, s, _f32(x1 * c)), rows.dtype)
    here: Array = positions == 0
    made[:, :, here] = rows[:, :, here]
    return made


def _f32(x: Array) -> Array:
    """A product of f32 numbers, which is exact in f64, rounded to f32."""
    return x.astype(np.float32).astype(np.float64)


def _rounded(x: Array, dtype: np.dtype[Any]) -> Array:
    """f32 numbers rounded to the dtype of the rows, to nearest even; every NaN is the same one."""
    return np.where(np.isnan(x), np.nan, x).astype(np.float32).astype(dtype)
