"""Adapters of the engines that are built on torch: rows as tensors and back."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import ml_dtypes
import numpy as np
import torch

from kvadapters.update import UpdateAdapter, from_update
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


def adapter(name: str, engine: str, limits: Mapping[str, Any] | None = None, **given: Any) -> UpdateAdapter:
    """Make the adapter of a cache of this engine, a package that is installed; see `from_update`."""
    said: dict[str, Any] = {"version": version(engine), "details": {"torch": str(torch.__version__)}}
    said |= {"limits": limits} if limits else {}
    return from_update(name, to_engine=to_torch, from_engine=to_numpy, said=said, **given)
