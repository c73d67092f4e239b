"""What LMCache takes for a device: a tensor `[parts, layers, tokens, width]` on the host."""

from __future__ import annotations

import gc
import os
from typing import Any

from kvspec.errors import CannotRun

for name, value in {"TRACK_USAGE": "false", "LOG_LEVEL": "CRITICAL"}.items():
    os.environ.setdefault(f"LMCACHE_{name}", value)
os.environ.setdefault("PYTHONHASHSEED", "0")
try:
    import torch
    from lmcache.v1.gpu_connector import GPUConnectorInterface
except ImportError as e:
    raise CannotRun(f"LMCache cannot be imported ({e}); nox -s engines-lmcache installs it") from e
gc.freeze()  # an engine collects all that is garbage as it starts, which else takes 50 times as long


class Device(GPUConnectorInterface):  # type: ignore[misc]
    """What moves rows between LMCache's objects and the tensor that a call is given as `device`."""

    def __init__(self, parts: int, layers: int, width: int) -> None:
        self.sizes = (parts, layers, width)

    def from_gpu(self, memory_obj: Any, start: int, end: int, **more: Any) -> None:
        """Copy rows into an object."""
        memory_obj.tensor.copy_(more["device"][:, :, start:end])

    def to_gpu(self, memory_obj: Any, start: int, end: int, **more: Any) -> None:
        """Copy rows out of an object."""
        more["device"][:, :, start:end] = memory_obj.tensor

    def batched_from_gpu(self, objects: Any, starts: Any, ends: Any, **more: Any) -> None:
        """Copy rows into objects."""
        for each in zip(objects, starts, ends, strict=True):
            self.from_gpu(*each, **more)

    def batched_to_gpu(self, objects: Any, starts: Any, ends: Any, **more: Any) -> None:
        """Copy rows out of objects."""
        for each in zip(objects, starts, ends, strict=True):
            self.to_gpu(*each, **more)

    def get_shape(self, num_tokens: int) -> torch.Size:
        """The shape of an object."""
        parts, layers, width = self.sizes
        return torch.Size([parts, layers, num_tokens, width])
