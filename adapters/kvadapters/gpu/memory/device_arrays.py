"""Rows that are on the device already: what `place` makes, and what everything takes that takes rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from kvadapters.gpu.memory.layout import Place
from kvadapters.gpu.runtime import Block, Runtime
from kvspec.geometry import Array


@dataclass(frozen=True)
class DeviceRows:
    """An array in device memory, contiguous, from byte `at` of a block on. Its shape and dtype are asked for as
    those of a host array are, so that both are checked by the same lines.
    """

    runtime: Runtime
    block: Block
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    at: int = 0

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> DeviceRows:
        """Some entries of the first axis, where they lie."""
        start, stop, _ = part.indices(self.shape[0])
        entry = prod(self.shape[1:]) * self.dtype.itemsize
        return replace(self, shape=(max(0, stop - start), *self.shape[1:]), at=self.at + start * entry)


APART = 256
"""Bytes of which arrays that are placed begin at multiples: what a GPU reads at once divides it."""


def placed(runtime: Runtime, *arrays: Array) -> tuple[DeviceRows, ...]:
    """Copies of host arrays on the device, side by side in one block: none of them where that begins, so that
    reading it from there is found."""
    ends = np.cumsum([APART, *(-(-a.nbytes // APART) * APART for a in arrays)]).tolist()
    host = np.zeros(ends[-1], np.uint8)
    for at, array in zip(ends, arrays, strict=False):
        host[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    block = runtime.allocate(host.nbytes)
    runtime.upload(host, block)
    return tuple(DeviceRows(runtime, block, a.shape, a.dtype, at) for a, at in zip(arrays, ends, strict=False))


def fetched(there: DeviceRows) -> Array:
    """A copy of an array on the host."""
    nbytes = prod(there.shape) * there.dtype.itemsize
    found = there.runtime.download(there.block, there.at, nbytes) if nbytes else np.empty(0, np.uint8)
    return found.view(there.dtype).reshape(there.shape)


def source(runtime: Runtime, rows: int, *arrays: Any) -> Place | None:
    """Keys and values where they lie, if they are on this device; None if they are on the host.

    Raises ValueError where one of them is elsewhere than the other, or both on another device.
    """
    found = [isinstance(a, DeviceRows) for a in arrays]
    if not any(found):
        return None
    if not all(found) or any(a.runtime is not runtime for a in arrays):
        raise ValueError("keys and values must both be on the host, or both on the device of this cache")
    keys, values = arrays
    return Place(keys.block, values.block, keys.at, values.at, rows)
