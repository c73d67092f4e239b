"""Arrays of mlx, from numpy and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np

from kvspec.geometry import Array


def to_engine(array: Array) -> Any:
    """Copy an array of numpy; bfloat16 by its bits, since mlx before 0.31 refuses the dtype of `ml_dtypes`."""
    if array.dtype == ml_dtypes.bfloat16:
        return mx.array(array.view(np.uint16)).view(mx.bfloat16)
    return mx.array(array)


def from_engine(array: Any) -> Array:
    """View an array of mlx; bfloat16 by its bits, since NumPy has no name for it."""
    if array.dtype == mx.bfloat16:
        return np.asarray(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.asarray(array)
