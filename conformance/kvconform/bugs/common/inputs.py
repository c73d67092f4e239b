"""Common bugs of caches that take arrays as if all were plain: in C order, aligned and writeable."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kvconform.bugs.common.unseen import Deferring
from kvconform.bugs.planting import Over, planted
from kvspec.contract import Pair
from kvspec.geometry import Array


class Taking(Over):
    """Takes the arrays that an append is handed in its own way."""

    def taken(self, array: Array) -> Array:
        """What it takes for the array."""
        return array

    def append(self, keys: Array, values: Array) -> None:
        super().append(self.taken(keys), self.taken(values))


@planted("wrong-position", breaks="GROW-2 GROW-14 RING-1")
class IgnoresStrides(Taking):
    """Rows are copied from the address of the first, as if they lay in C order."""

    def taken(self, array: Array) -> Array:
        return as_strided(array, strides=np.empty(array.shape, array.dtype).strides)


@planted("wrong-position", breaks="GROW-2 GROW-14 RING-1")
class ElementsSideBySide(Taking):
    """The strides of batch, heads and rows are heeded; the elements of a row are taken to lie side by side."""

    def taken(self, array: Array) -> Array:
        return as_strided(array, strides=(*array.strides[:-1], array.itemsize))


@planted("silent-no-op", breaks="GROW-2 GROW-14 RING-1")
class WritesToItsInput(Taking):
    """Rows are made ready in the caller's own array, which need not be writeable."""

    def taken(self, array: Array) -> Array:
        array[...] = array.copy()
        return array


@planted("needless-refusal", breaks="GROW-1 RING-1")
class NeedsAlignment(Taking):
    """Vectors of several elements are loaded, from aligned addresses alone."""

    def taken(self, array: Array) -> Array:
        if not array.flags.aligned:
            raise ValueError("misaligned address")
        return array


@planted("aliased-array", breaks="CACHE-4 GROW-2 GROW-14")
class TrustsReadOnly(Deferring):
    """An array that cannot be written through is not copied: nobody is thought to change it."""

    def taken(self, new: Pair) -> Pair:
        return Pair(*(a if not a.flags.writeable else a.copy() for a in new))
