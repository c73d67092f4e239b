"""Counts what the reference's rows cost: the memory of `Rows` is its device, everything else is the host.

Each array counts as an allocation. A copy within the device counts the bytes it writes; nothing is ever launched,
and nothing waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvspec.geometry import Array


@dataclass
class Meter:
    """What was counted so far, over all caches."""

    host_to_device: int = 0
    device_to_host: int = 0
    device_to_device: int = 0
    launches: int = 0
    allocations: int = 0
    synchronisations: int = 0

    def reading(self) -> dict[str, int]:
        """All counts as they stand."""
        return dict(vars(self))


meter = Meter()


class Resident(np.ndarray[Any, np.dtype[Any]]):
    """Rows on the device, as `place` makes them and as snapshots hold them."""


def placed(array: Array) -> Array:
    """A copy of host rows on the device."""
    meter.host_to_device += array.nbytes
    meter.allocations += 1
    return array.copy().view(Resident)


def resident(array: Array) -> Array:
    """Device memory as a source of rows, without a copy."""
    return array.view(Resident)


def allocated(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """New device memory, filled with NaN, which bytes of ones are in every form: nothing may depend on it."""
    meter.allocations += 1
    return np.full(shape, 255 if dtype == np.uint8 else np.nan, dtype)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """New device memory of zeros."""
    meter.allocations += 1
    return np.zeros(shape, dtype)


def write(target: Array, source: Array) -> None:
    """Copy rows into device memory, cast where the dtypes differ."""
    if isinstance(source, Resident):
        meter.device_to_device += target.nbytes
    else:
        meter.host_to_device += source.nbytes
    target[...] = source


def moved(array: Array) -> Array:
    """A copy of device rows on the device, in memory of its own."""
    meter.allocations += 1
    meter.device_to_device += array.nbytes
    return array.copy().view(Resident)


def fetched(array: Array) -> Array:
    """A copy of device rows on the host."""
    meter.device_to_host += array.nbytes
    return np.array(array)


def taken(array: Array) -> Array:
    """Give rows to a kernel: they cross to the device, unless they are there already."""
    if not isinstance(array, Resident):
        meter.host_to_device += array.nbytes
    return np.asarray(array)


def handed(out: Array | None, found: Array, resident: bool) -> Array:
    """What a kernel wrote: into `out` where that is given, else into new memory, on the device or on the host."""
    if out is None:
        meter.allocations += resident
        out = np.empty_like(found).view(Resident) if resident else np.empty_like(found)
    if not isinstance(out, Resident):
        meter.device_to_host += found.nbytes
    out[...] = found
    return out
