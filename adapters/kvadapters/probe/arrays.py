"""Types of arrays, and matrices without their zeros."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Thin:
    """A matrix of a probe, [n, m], in float64 and without the rows and columns that hold zeros alone: most do."""

    def __init__(self, whole: Array) -> None:
        self.size = len(whole)
        self.rows, self.columns = (np.flatnonzero(whole.any(axis)) for axis in (1, 0))
        self.part = np.ascontiguousarray(whole[np.ix_(self.rows, self.columns)].T, np.float64)

    def of(self, x: Float64) -> Float64:
        """Multiply each vector of x by the matrix: float64 [..., n]."""
        out = np.zeros((*x.shape[:-1], self.size))
        out[..., self.rows] = x[..., self.columns] @ self.part
        return out
