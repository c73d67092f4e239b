"""RoPE, with every rounding fixed: it turns pairs of elements of a row like points of the plane.

A pair (x0, x1), at an angle whose cosine and sine are the f32 numbers c and s of `rope_tables`, becomes in f32

    y0 = fma(x0, c, -(x1 * s))
    y1 = fma(x0, s, x1 * c)

where a product by itself is rounded and `fma` rounds once; then both are rounded to the dtype of the rows. Where c
is 1 and s is 0, a pair is left as it is. So the result depends on the elements of the pair and on the position of
its row alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvref.arithmetic import rope_scaling, rope_tables
from kvref.arithmetic.strict_attention import fma
from kvref.cite import cite
from kvref.memory import meter
from kvspec.contract import Rope
from kvspec.geometry import DTYPES, Array
from kvspec.refusals import rope as refusals
from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN, numbers
from kvspec.rope.sections import Sections


def rotate(rows: Array, positions: Array, rope: Rope) -> Array:
    """Turn each of the rows `[B, H, n, dim]` by its position, `[n]`, or with sections by its three positions, `[3,
    n]`. Give new rows of the same dtype, on the device if the rows are there."""
    if rows.size == 0:
        cite("ROPE-10")
        return rows.copy()
    made = _made(rows, positions, rope)
    return meter.moved(made) if isinstance(rows, meter.Resident) else made


def at_positions(
    asked: Rope | None, first: int, queries: Array, keys: Array, still: int = 0
) -> tuple[Array, Array]:
    """The queries and the new keys of an attend, each turned at its own position, those of the first row `first`;
    unchanged without RoPE. The first `still` elements of each row are left alone."""
    if asked is None:
        return queries, keys
    positions = first + np.arange(keys.shape[2])
    cite("ROPE-19", "ROPE-21", "ROPE-22", "ROPE-23", *(() if asked.scaling is None else ("ROPE-37",)))
    cite(*["ROW-22"] * bool(still))
    return _inside(queries, positions, asked, still), _inside(keys, positions, asked, still)


def _inside(rows: Array, positions: Array, rope: Rope, still: int) -> Array:
    """Turn rows before they are written; on the device they get a place of their own."""
    made = np.array(rows)
    made[..., still:] = _made(rows[..., still:], positions, rope)
    if not isinstance(rows, meter.Resident):
        return made
    meter.meter.device_to_device += made.nbytes
    return meter.resident(made)


def _made(rows: Array, positions: Array, rope: Rope) -> Array:
    dims = demand(rows, positions, rope)
    _cite(rows, positions, rope, dims)
    return _turned(np.asarray(rows), positions, rope, dims)


def demand(rows: Array, positions: Array, rope: Rope) -> int:
    """How many elements of a row are turned. Refuses what cannot be turned."""
    each = () if rope.sections is None else (3,)
    if rows.ndim != 4 or rows.dtype not in DTYPES.values() or positions.shape != each + rows.shape[2:3]:
        raise refusals.rows("ROPE-11", rows, positions)
    width = rows.shape[-1]
    dims = width if rope.dims is None else rope.dims
    if dims < 1 or dims > width or dims % 2:
        raise refusals.dims("ROPE-12", dims, width)
    if rope.base < 1:
        raise refusals.base("ROPE-13", rope.base)
    if not _sensible(rope.scaling, dims, rope.base):
        raise refusals.scaling("ROPE-38", rope.scaling, dims, rope.base)
    if not _fit(rope.sections, dims):
        raise refusals.sections("ROPE-45", rope.sections, dims)
    return dims


def _fit(sections: Sections | None, dims: int) -> bool:
    """Whether sections are of all pairs of these many elements, and have as many pairs as they say."""
    if sections is None:
        return True
    found = [axis(sections, i) for i in range(dims // 2)]
    return all(found.count(which) == n for which, n in enumerate(sections[:3]))


def axis(sections: Sections, pair: int) -> int:
    """Which of a row's three positions turns a pair: 0 for time, 1 for height, 2 for width."""
    if sections.interleaved:
        third = pair % 3
        return third if pair // 3 < sections[third] else 0
    return 0 if pair < sections.time else 1 if pair < sections.time + sections.height else 2


def _sensible(scaling: Scaling | None, dims: int, base: int) -> bool:
    """Whether a scaling gives a frequency above 0 to every pair of these many elements."""
    if scaling is None:
        return True
    told = numbers(scaling)
    if not np.isfinite(told).all() or min(told) <= 0 or told[0] < 1:
        return False
    match scaling:
        case NTK():
            return dims > 2
        case Llama3():
            return scaling.low_freq_factor < scaling.high_freq_factor
        case LongRoPE():
            return scaling.original > 1 and len(scaling.short) == len(scaling.long) == dims // 2
        case YaRN():
            low, high = rope_scaling.ends(scaling, dims, base) if base > 1 else (1, 0)
            return scaling.beta_slow < scaling.beta_fast and low <= high
    return True


CLAUSES = {Linear: "ROPE-31", NTK: "ROPE-32", Llama3: "ROPE-33", YaRN: "ROPE-34", LongRoPE: "ROPE-36"}
"""What each scaling does to frequencies."""


def _frequencies(scaling: Scaling) -> str:
    """The clause on the frequencies of a scaling."""
    return "ROPE-42" if isinstance(scaling, YaRN) and scaling.exact else CLAUSES[type(scaling)]


def _cite(rows: Array, positions: Array, rope: Rope, dims: int) -> None:
    """Cite the clauses of every rotation, and those of this one's arguments."""
    cite("ROPE-8", "ROPE-9")
    if positions.any():  # at position 0 nothing is turned
        cite("ROPE-1" if rope.pairing == "norm" else "ROPE-2", "ROPE-5", "ROPE-16", "ROPE-17")
        cite(*(("ROPE-3", "ROPE-15") if rope.scaling is None else (_frequencies(rope.scaling), "ROPE-39")))
    if rope.sections is not None and (positions != positions[0]).any():
        cite("ROPE-44" if rope.sections.interleaved else "ROPE-43")
    if rope_scaling.factor(rope.scaling) != 1:
        cite("ROPE-35", "ROPE-39")
    if dims < rows.shape[-1]:
        cite("ROPE-4", "ROPE-18")
    if np.atleast_2d(positions == 0).all(0).any() and rope_scaling.factor(rope.scaling) == 1:
        cite("ROPE-6", "ROPE-18")
    with np.errstate(invalid="ignore"):
        if not np.isfinite(rows).all():
            cite("ROPE-7")


def pairs(pairing: str, dims: int) -> tuple[slice, slice]:
    """The first elements of all pairs, and the second ones."""
    if pairing == "norm":
        return slice(0, dims, 2), slice(1, dims, 2)
    return slice(0, dims // 2), slice(dims // 2, dims)


def _turned(rows: Array, positions: Array, rope: Rope, dims: int) -> Array:
    first, second = pairs(rope.pairing, dims)
    c, s = (a.astype(np.float64) for a in _table(positions, rope, dims))
    made, still = rows.copy(), (c == 1) & (s == 0)
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        x0, x1 = wide[..., first], wide[..., second]
        made[..., first] = _rounded(fma(x0, c, -_f32(x1 * s)), rows.dtype)
        made[..., second] = _rounded(fma(x0, s, _f32(x1 * c)), rows.dtype)
    for half in (first, second):
        made[..., half] = np.where(still, rows[..., half], made[..., half])
    return made


def _table(positions: Array, rope: Rope, dims: int) -> tuple[Array, Array]:
    """Cosines and sines `[n, dims / 2]` in f32, each pair's of the position that turns it."""
    if rope.sections is None:
        return rope_tables.table(positions, dims, rope.base, rope.scaling)
    tables = [rope_tables.table(each, dims, rope.base, rope.scaling) for each in positions]
    turning = [tables[axis(rope.sections, i)] for i in range(dims // 2)]
    c, s = (np.stack([t[part][:, i] for i, t in enumerate(turning)], axis=1) for part in (0, 1))
    return c, s


def _f32(x: Array) -> Array:
    """A product of f32 numbers, which is exact in f64, rounded to f32."""
    return x.astype(np.float32).astype(np.float64)


def _rounded(x: Array, dtype: np.dtype[Any]) -> Array:
    """f32 numbers rounded to the dtype of the rows, to nearest even; every NaN is the same one."""
    return np.where(np.isnan(x), np.nan, x).astype(np.float32).astype(dtype)
