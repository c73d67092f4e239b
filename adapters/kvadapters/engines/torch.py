"""Rows as tensors of torch and back, for the engines that are built on it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from kvspec.geometry import Array

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def to_torch(array: Array) -> Any:
    """View an array of numpy; bfloat16 by its bits, since torch does not take that dtype from numpy."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(tensor: Any) -> Array:
    """View a tensor; bfloat16 by its bits."""
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16)).view(ml_dtypes.bfloat16)
    return np.asarray(tensor)
