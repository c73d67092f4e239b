"""ROPE by complex numbers: a pair of elements is one number, and turning it is a product with exp(i t).

Written from the text of the chapter alone. Attention is that of a textbook, in float64, over turned keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.engines.foreign import attention
from support.engines.foreign.demands import want


def turned(rows: Any, positions: Any, rope: Any) -> Any:
    """Rows `[..., n, dim]`, each turned by its position."""
    dims = rows.shape[-1] if rope.dims is None else rope.dims
    want(dims % 2 == 0 and 2 <= dims <= rows.shape[-1] and rope.base >= 1, f"{dims} elements, base {rope.base}")
    real, imaginary = (
        (slice(0, dims, 2), slice(1, dims, 2))
        if rope.pairing == "norm"
        else (slice(0, dims // 2), slice(dims // 2, dims))
    )
    frequencies = rope.base ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
    angles = np.asarray(positions, np.float64)[:, None] * frequencies
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        points = np.empty(wide[..., real].shape, np.complex128)
        points.real, points.imag = wide[..., real], wide[..., imaginary]
        points = points * np.exp(1j * angles)
        out = rows.copy()
        out[..., real], out[..., imaginary] = points.real.astype(rows.dtype), points.imag.astype(rows.dtype)
    return out


class Cache(attention.Cache):
    """A cache whose attends turn queries and keys first."""

    def attend(self, queries: Any, keys: Any, values: Any, how: Any, out: Any = None, of: Any = None) -> Any:
        """Turn, append and attend."""
        if how.rope is not None:
            first = self.lengths().offset
            keys, queries = (turned(a, first + np.arange(a.shape[2]), how.rope) for a in (keys, queries))
        return super().attend(queries, keys, values, how, out, of)


class Complex(attention.Float64):
    """The adapter."""

    CACHE = Cache

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        told = super().describe()
        return {**told, "name": "complex-numbers", "chapters": {**told["chapters"], "rope": "visible"}}

    def rotate(self, rows: Any, positions: Any, rope: Any) -> Any:
        """Turn rows that are handed in."""
        want(rows.ndim == 4, f"rows are {rows.shape}")
        if rows.size == 0:
            return rows.copy()
        want(positions.shape == (rows.shape[2],), f"{rows.shape[2]} rows, positions {positions.shape}")
        return turned(rows, positions, rope)
