"""RESIDENCY over a device that does not exist: arrays there are numpy's, and all that is done to them counts.

Written from the text of the chapters alone. The cache is a growing one, whose buffers are replaced by ones twice as
large.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from kvspec.chapters.record import METERED
from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign.demands import want, want_rows, want_sizes


class There:
    """An array on the device."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.dtype, self.ndim, self.nbytes = array.shape, array.dtype, array.ndim, array.nbytes


class Device:
    """Its meter, and what can be done on it."""

    def __init__(self) -> None:
        self.meter = Counter(dict.fromkeys(METERED, 0))

    def zeros(self, shape: Any, dtype: Any) -> There:
        """New memory."""
        self.meter["allocations"] += 1
        return There(np.zeros(shape, dtype))

    def upload(self, array: Any) -> There:
        """Bring an array here; one that is here stays."""
        if isinstance(array, There):
            return array
        self.meter["host_to_device"] += array.nbytes
        self.meter["synchronisations"] += 1
        self.meter["allocations"] += 1
        return There(array.copy())

    def download(self, array: There) -> Any:
        """Bring it back."""
        self.meter["device_to_host"] += array.nbytes
        self.meter["synchronisations"] += 1
        return array.array.copy()

    def launch(self, *copies: tuple[There, int, There, int]) -> None:
        """Copy rows into slots from one on, many arrays in one launch."""
        self.meter["launches"] += 1
        for to, first, rows, n in copies:
            to.array[:, :, first : first + n] = rows.array[:, :, :n]
            self.meter["device_to_device"] += rows.array[:, :, :n].nbytes


class Cache:
    """A growing cache on the device."""

    def __init__(self, device: Device, config: Any) -> None:
        want_sizes(config, "step")
        self.device, self.config, self.free_called = device, config, False
        self.free()

    def free(self) -> None:
        """No rows, and no memory."""
        self.offset, self.room, self.seen = 0, 0, 0
        self.sides: list[There] = []

    def append(self, keys: Any, values: Any) -> None:
        """Write rows where there is room, or make room first."""
        n = keys.shape[2]
        if n == 0:
            return
        want_rows(self.config, keys, values, self.config.batch)
        new = [self.device.upload(array) for array in (keys, values)]
        if self.offset + n > self.room:
            self.grow(max(self.offset + n, 2 * self.room))
        self.device.launch(*((side, self.offset, rows, n) for side, rows in zip(self.sides, new, strict=True)))
        self.offset += n
        self.seen = self.offset

    def grow(self, room: int) -> None:
        """Move what is live to larger buffers."""
        sides = [self.device.zeros(self.config.shape(w, room), DTYPES[self.config.dtype]) for w in "kv"]
        if self.offset:
            self.device.launch(*((a, 0, b, self.offset) for a, b in zip(sides, self.sides, strict=True)))
        self.sides, self.room = sides, room

    def read(self, what: str) -> Pair | None:
        """Bring the live rows to the host."""
        if not self.sides:
            return None
        rows = (There(side.array[:, :, : self.offset]) for side in self.sides)
        return Pair(*(self.device.download(array) for array in rows))

    def lengths(self) -> Lengths:
        """How many rows there are, and may be."""
        return Lengths(self.offset, self.offset, None, self.room)

    def can_rewind(self, to: int) -> bool:
        """Whether there is such an offset."""
        return 0 <= to <= self.offset

    def rewind(self, to: int) -> None:
        """Lower the offset."""
        want(self.can_rewind(to), f"rewind to {to}")
        self.offset = to


class Counted:
    """The adapter."""

    def __init__(self) -> None:
        self.device = Device()

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "counted", "chapters": {"growing": "visible", "residency": "visible"}}

    def open(self, kind: str, config: Any) -> Cache:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return Cache(self.device, config)

    def meter(self) -> dict[str, int]:
        """The counts so far."""
        return dict(self.device.meter)

    def place(self, *arrays: Any) -> tuple[Any, ...]:
        """Copies on the device."""
        return tuple(self.device.upload(array) for array in arrays)

    def fetch(self, placed: There) -> Any:
        """Bring one back."""
        return self.device.download(placed)
