"""Tensors of torch, from numpy and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from kvspec.geometry import Array


def to_engine(array: Array) -> Any:
    """View an array of numpy; bfloat16 by its bits, since torch does not take that dtype from numpy."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def from_engine(tensor: Any) -> Array:
    """View a tensor, or copy it from a GPU; bfloat16 by its bits."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16)).view(ml_dtypes.bfloat16)
    return np.asarray(tensor)
