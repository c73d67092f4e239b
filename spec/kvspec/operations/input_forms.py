"""The forms in which arrays are handed in: the same elements, laid out differently in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def plain(array: Array) -> Array:
    """The arrays as they came: in C order, aligned and writeable."""
    return array


def strided(array: Array) -> Array:
    """Every other row and element of a larger array, with NaN between them."""
    *front, rows, dim = array.shape
    wide: Array = np.full((*front, 2 * rows, 2 * dim), np.nan, array.dtype)
    wide[..., ::2, ::2] = array
    return wide[..., ::2, ::2]


def transposed(array: Array) -> Array:
    """The second and third axes exchanged: `[batch, n, heads, dim]` in memory, as a projection leaves rows."""
    return np.array(array.swapaxes(1, 2), order="C").swapaxes(1, 2)


def readonly(array: Array) -> Array:
    """A view that cannot be written through, of memory that its caller still writes to."""
    view = array.copy().view()
    view.flags.writeable = False
    return view


def unaligned(array: Array) -> Array:
    """One byte behind an address that is a multiple of the element's size."""
    moved: Array = np.ndarray(array.shape, array.dtype, np.empty(array.nbytes + 1, np.uint8), offset=1)
    moved[...] = array
    return moved


def fortran(array: Array) -> Array:
    """In Fortran order: the first axis is the fastest."""
    return np.array(array, order="F")


INPUT_FORMS: dict[str, Callable[[Array], Array]] = {
    "plain": plain,
    "strided": strided,
    "transposed": transposed,
    "readonly": readonly,
    "unaligned": unaligned,
    "fortran": fortran,
}
"""Functions that make an array of each form, by the words of an operation's `input`."""

INPUTS = tuple(INPUT_FORMS)
"""The words for the forms; the first is the default."""
