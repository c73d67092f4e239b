"""Types of arrays, and matrices without their zeros."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Thin:
    """A matrix of a probe, [n, m], in float64 and without its zeros. Most rows have one element, or none; others
    are multiplied without the columns of zeros alone."""

    def __init__(self, whole: Array) -> None:
        there = whole != 0
        count = there.sum(1)
        self.size, self.ones, self.rows = len(whole), np.flatnonzero(count == 1), np.flatnonzero(count > 1)
        self.taken = there[self.ones].argmax(1)
        self.factors = whole[self.ones, self.taken].astype(np.float64)
        self.columns = np.flatnonzero(there[self.rows].any(0))
        self.part = np.ascontiguousarray(whole[np.ix_(self.rows, self.columns)].T, np.float64)

    def of(self, x: Float64) -> Float64:
        """Multiply each vector of x by the matrix: float64 [..., n]."""
        out = np.zeros((*x.shape[:-1], self.size))
        out[..., self.ones] = x[..., self.taken] * self.factors
        if len(self.rows):
            out[..., self.rows] = x[..., self.columns] @ self.part
        return out
