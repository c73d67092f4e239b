"""numpy: slice assignment, pages taken by index, attention as two matrix products in f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvprofile.peers.array_work import ArrayPeer
from kvprofile.peers.host_arrays import given
from kvspec.forms import FLOATS, Form, grouped
from kvspec.geometry import Array


class Numpy(ArrayPeer):
    """The peer."""

    name = "numpy"
    words = (
        f"numpy {np.__version__}: slices assigned, pages taken by index; attention in f32 by its BLAS, over rows "
        "in a form when it has decoded them"
    )

    def __init__(self) -> None:
        super().__init__(Arrays())


class Arrays:
    """numpy as a library of arrays."""

    form = ""

    def wrap(self, array: Array) -> Array:
        """Return the array itself."""
        return array

    def queries(self, array: Array, dtype: str) -> Array:
        """Return these: products are in f32."""
        return array

    def host(self, array: Array) -> Array:
        """Return the array itself."""
        return array

    def copy(self, array: Array) -> Array:
        """Copy into new memory."""
        return array.copy()

    def landed(self, array: Array) -> Array:
        """Return the array itself."""
        return array

    def cat(self, arrays: Sequence[Array], axis: int) -> Array:
        """Join arrays in new memory."""
        return np.concatenate(arrays, axis)

    def write(self, target: Array, axis: int, at: int, source: Array) -> None:
        """Assign a slice."""
        target[(*(slice(None),) * axis, slice(at, at + source.shape[axis]))] = source

    def take(self, array: Array, entries: Array) -> Array:
        """Take entries of the first axis, in new memory."""
        return np.take(array, entries, 0)

    def attend(self, queries: Array, keys: Array, values: Array, seen: int | None = None) -> Array:
        """Compute softmax(q k / sqrt(dim)) v, heads of a group together; rows are cast to f32 for the BLAS."""
        batch, heads, n, dim = queries.shape
        kv_heads, rows = keys.shape[1:3]
        q = queries.reshape(batch, kv_heads, heads // kv_heads * n, dim)
        scores = q @ _f32(keys).swapaxes(2, 3) / np.float32(np.sqrt(dim))
        if n > 1 or seen is not None:
            ahead = np.arange(rows) > (seen or rows) - n + np.arange(n)[:, None]
            scores.reshape(batch, heads, n, rows)[:, :, ahead] = -np.inf
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        out: Any = scores @ _f32(values)
        found: Array = out.reshape(batch, heads, n, values.shape[3])
        return found

    def encoded(self, form: Form, rows: Array) -> tuple[Array, ...]:
        """Divide by the largest of each group, or by the scale that is given, in f32, and round."""
        if form.given:
            return ((rows.astype(np.float32) / given(form, rows.shape[1])).astype(form.of.dtype),)
        groups = grouped(form, rows.astype(np.float32))
        scales = np.abs(groups).max(-1) / np.float32(form.of.top)
        codes = groups / np.maximum(scales, np.finfo(np.float32).tiny)[..., None]
        whole = np.rint(codes) if form.codes not in FLOATS else codes
        return whole.astype(form.of.dtype).reshape(rows.shape), scales.astype(form.of.scale)

    def decoded(self, form: Form, kept: tuple[Array, ...], dtype: str) -> Array:
        """Multiply by the scales, in f32."""
        rows = kept[0].astype(np.float32)
        parts = grouped(form, rows)
        scales = given(form, rows.shape[1])[..., None] if form.given else kept[1].astype(np.float32)[..., None]
        np.multiply(parts, scales, out=parts)
        return rows


def _f32(rows: Array) -> Array:
    return rows.astype(np.float32, copy=False)
