"""Rows that are on the device already: made by `place`, accepted by every method that takes rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from kvgpu.memory.layout import Place
from kvgpu.runtime import Block, Runtime
from kvspec.geometry import Array


@dataclass(frozen=True)
class DeviceRows:
    """An array in device memory, contiguous, from byte `at` of a block on. Shape and dtype have the same names as
    on host arrays, so that the same code checks both. `known` are the values that were last given with these keys,
    and where both lie.
    """

    runtime: Runtime
    block: Block
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    at: int = 0
    known: tuple[Any, Place] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def ndim(self) -> int:
        """Count the axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> DeviceRows:
        """Give some entries of the first axis, without a copy."""
        start, stop, _ = part.indices(self.shape[0])
        entry = prod(self.shape[1:]) * self.dtype.itemsize
        return replace(self, shape=(max(0, stop - start), *self.shape[1:]), at=self.at + start * entry)


APART = 256
"""Placed arrays begin at multiples of these bytes, as the reads of a GPU do."""


def placed(runtime: Runtime, *arrays: Array) -> tuple[DeviceRows, ...]:
    """Copy host arrays to one device block; none starts at the block's beginning, so that code which reads from
    there by mistake is found."""
    ends = np.cumsum([APART, *(-(-a.nbytes // APART) * APART for a in arrays)]).tolist()
    host = np.zeros(ends[-1], np.uint8)
    for at, array in zip(ends, arrays, strict=False):
        host[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    block = runtime.allocate(host.nbytes)
    runtime.upload(host, block)
    return tuple(DeviceRows(runtime, block, a.shape, a.dtype, at) for a, at in zip(arrays, ends, strict=False))


def fetched(there: DeviceRows) -> Array:
    """Copy an array to the host."""
    nbytes = prod(there.shape) * there.dtype.itemsize
    found = there.runtime.download(there.block, there.at, nbytes) if nbytes else np.empty(0, np.uint8)
    return found.view(there.dtype).reshape(there.shape)


def source(runtime: Runtime, rows: int, keys: Any, values: Any = None) -> Place | None:
    """Give keys and values in place, if they are on this device; None if they are on the host.

    Raises ValueError if they are in different places, or both on another device.
    """
    if (
        isinstance(keys, DeviceRows)
        and isinstance(values, DeviceRows)
        and keys.runtime is values.runtime is runtime
    ):
        known = keys.known
        if known is None or known[0] is not values or known[1].slots != rows:
            known = values, Place(keys.block, values.block, keys.at, values.at, rows)
            object.__setattr__(keys, "known", known)
        return known[1]
    if isinstance(keys, DeviceRows) or isinstance(values, DeviceRows):
        raise ValueError("keys and values must both be on the host, or both on the device of this cache")
    return None
