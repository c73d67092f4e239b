"""Arrays as vectors write them: rows by serials if these determine every bit, masks as text, others as tensors.

Rows written by serials can be made by the program that replays a vector, and read in a diff. `axes` names the axes
of such an array, a letter each: `t` rows, `l` layers and `s` sequences have serials of their own, listed in the
order the array is walked. `b` sequences and `h` heads hold the same ones, each in digits of its own
(`kvspec.rows`). `d` are the elements.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvspec.geometry import DTYPES, Array
from kvspec.rows.book import SerialBook
from kvspec.rows.legible import read, spell
from kvspec.rows.serials import ZEROED, largest

AXES = {3: ("thd",), 4: ("bhtd", "lhtd", "lshd"), 5: ("lbhtd",)}
"""The axes that arrays of rows may have, by number of axes."""

USUAL = "bhtd"
"""The axes if none are named."""

NAMED = "lst"
"""The axes along which every place has its own serial."""

LEAST_DIM = 3
"""Elements that a row needs to spell its identity digit by digit."""

LARGEST_MASK = 1 << 12
"""Most elements of a mask that is written as text."""

DIGITS = 16
"""Digits in a tensor's name, from the sha256 of its dtype, shape and bytes."""


def made(serials: list[int | None], axes: str, shape: tuple[int, ...], dtype: str, kind: str) -> Array:
    """Make legible rows of these serials, None for a row of zeros; `kind` is "k" or "v"."""
    named = tuple(n for n, axis in zip(shape, axes, strict=True) if axis in NAMED)
    serial = np.array([ZEROED if s is None else s for s in serials], np.int64).reshape(named)
    heads, sequences = (_along(axes, shape, axis) for axis in "hb")
    places = serial.reshape([n if axis in NAMED else 1 for n, axis in zip(shape, axes, strict=True)][:-1])
    numbers = spell(kind, heads, sequences, np.maximum(places, 0), shape[-1])
    whole = np.broadcast_to(np.where(places[..., None] == ZEROED, np.float32(0), numbers), shape)
    return whole.astype(DTYPES[dtype])


def _along(axes: str, shape: tuple[int, ...], axis: str) -> Array:
    """Give the index along an axis, shaped to broadcast over all but the last; zeros if there is no such axis."""
    at = axes.find(axis)
    count = shape[at] if at >= 0 else 1
    return np.arange(count).reshape([count if i == at else 1 for i in range(len(axes) - 1)])


def _serials(array: Array, axes: str, kind: str) -> list[int | None]:
    """Read the serials of the rows of head 0 and sequence 0."""
    first = array[tuple(0 if axis in "bh" else slice(None) for axis in axes)]
    found = read(first.reshape(1, 1, -1, array.shape[-1]), kind)[0, 0]
    return [None if s == ZEROED else int(s) for s in found]


def by_serials(keys: Array, values: Array) -> dict[str, Any] | None:
    """Write key and value rows by serials; None if serials do not determine every bit."""
    if (
        keys.ndim not in AXES
        or keys.shape[:-1] != values.shape[:-1]
        or min(keys.shape[-1], values.shape[-1]) < LEAST_DIM
    ):
        return None
    for axes in AXES[keys.ndim]:
        serials = _common(keys, values, axes)
        if serials is not None:
            named = {} if axes == USUAL else {"axes": axes}
            return {"rows": serials, **named, "k": _form(keys), "v": _form(values)}
    return None


def _common(keys: Array, values: Array, axes: str) -> list[int | None] | None:
    """Give the serials that make both arrays."""
    if not keys.size or not values.size:
        return [] if 0 in [n for n, axis in zip(keys.shape, axes, strict=True) if axis in NAMED] else None
    both = (("k", keys), ("v", values))
    for kind, array in both:
        serials = _serials(array, axes, kind)
        if all(s is None or 0 <= s < largest(array.shape[-1]) for s in serials) and all(
            _is(a, serials, axes, k) for k, a in both
        ):
            return serials
    return None


def _is(array: Array, serials: list[int | None], axes: str, kind: str) -> bool:
    return array.tobytes() == made(serials, axes, array.shape, _dtype(array), kind).tobytes()


def _dtype(array: Array) -> str:
    return next((name for name, dtype in DTYPES.items() if dtype == array.dtype), str(array.dtype))


def _form(array: Array) -> list[Any]:
    return [_dtype(array), *array.shape]


def tensor_name(array: Array) -> str:
    """Name a tensor by what it holds."""
    return hashlib.sha256(repr(_form(array)).encode() + array.tobytes()).hexdigest()[:DIGITS]


@dataclass
class Arrays:
    """Writes the arrays of one step; keeps the tensors among them by their names."""

    book: SerialBook
    tensors: dict[str, Array] = field(default_factory=dict)

    def pair(self, name: str, keys: Array | None, values: Array | None) -> dict[str, Any]:
        """Write a pair under one name, by serials; or key and value rows each under its own name."""
        if keys is not None and values is not None:
            told = by_serials(keys, values)
            if told is not None:
                return {name: told}
        return {
            f"{name}.{kind}": self.alone(f"{name}.{kind}", a) for kind, a in zip("kv", (keys, values), strict=True)
        }

    def alone(self, name: str, array: Array | None, within: Array | None = None) -> dict[str, Any] | None:
        """Write a mask as text, another array as a tensor; with the allowed error of its elements, if given."""
        if array is None:
            return None
        if array.dtype == bool and array.size <= LARGEST_MASK:
            rows = array.reshape(-1, array.shape[-1]) if array.size else array[:0].reshape(0, 0)
            return {"bits": ["".join("01"[int(x)] for x in row) for row in rows], "as": _form(array)}
        written = self._tensor(array) | ({"nan": "any"} if self._any_nan(array, name) else {})
        return written | ({} if within is None else {"within": self._tensor(within)})

    def _tensor(self, array: Array) -> dict[str, Any]:
        name = tensor_name(array)
        self.tensors[name] = np.ascontiguousarray(array)
        return {"tensor": name, "as": _form(array)}

    def _any_nan(self, array: Array, name: str) -> bool:
        """Tell whether NaN bits may differ: in rows that were cast or rotated, and in arrays that are not rows."""
        with np.errstate(invalid="ignore"):
            nan = np.isnan(array) if array.dtype != bool else np.zeros_like(array)
            other = np.where(nan, -array, array) if nan.any() else array  # its NaN of the other sign
        if not nan.any() or not name.endswith((".k", ".v")):
            return bool(nan.any())
        places = {tuple(place[:-1]) for place in np.argwhere(nan)}
        return all(self.book.alike(array[place], other[place]) for place in places)
