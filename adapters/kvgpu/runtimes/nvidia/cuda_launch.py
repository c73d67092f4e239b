"""Launches on an NVIDIA GPU: arguments packed once a launch, replays checked only where something was released."""

from __future__ import annotations

import struct
from functools import lru_cache, partial
from typing import Any

import numpy as np

from kvgpu.runtime import Block, Work
from kvgpu.runtimes import launch_shapes
from kvgpu.runtimes.capture import Recording
from kvgpu.runtimes.tensor_map import TensorMap, flat

SHAPES = 256
"""Launch shapes that a kernel remembers."""

CELL = 8
"""Bytes of an argument: each is a pointer or an integer of 64 bits."""


class Kernel:
    """A loaded kernel. Its arguments are written into cells that the driver reads before the launch returns."""

    def __init__(self, driver: Any, function: Any, name: str, shared: int) -> None:
        self._launch, self._function, self._name, self._shared = driver.launchKernel, function, name, shared
        self._address = function.ptr
        if shared:  # more than 48 KiB have to be asked for
            most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(self._address, most, shared)
        self._arguments = -1
        self._shape = lru_cache(SHAPES)(partial(launch_shapes.on_a_gpu, name))

    def _make_room(self, args: tuple[Block | int | TensorMap, ...]) -> None:
        sizes = [len(a.cells) if isinstance(a, TensorMap) else 1 for a in args]
        self._pack = struct.Struct(f"{sum(sizes)}q").pack_into
        self._cells, self._arguments = bytearray(CELL * sum(sizes)), len(args)
        begins = np.frombuffer(self._cells, np.uint8).ctypes.data
        firsts = np.cumsum([0, *sizes[:-1]]).astype(np.uint64)
        self._pointers = begins + CELL * firsts
        self._table, self._maps = self._pointers.ctypes.data, sum(sizes) - len(args)

    def __call__(self, work: Work, args: tuple[Block | int | TensorMap, ...], stream: int) -> None:
        """Start it, with one item for each word. Raises RuntimeError if a block was released."""
        if len(args) != self._arguments:
            self._make_room(args)
        if self._maps:
            args = tuple(flat(args))
        try:
            self._pack(self._cells, 0, *[a if type(a) is not Block else a.handle.ptr for a in args])
        except AttributeError:
            raise RuntimeError(self._released(args)) from None
        group, groups = self._shape(work)
        self._launch(self._address, *groups, *group, self._shared, stream, self._table, 0)

    def _released(self, args: tuple[Block | int | TensorMap, ...]) -> str:
        which = next(i for i, a in enumerate(args) if isinstance(a, Block) and a.handle is None)
        return f"launch: argument {which} of {self._name} was released"


class Unreleased:
    """A recording that looks through its blocks only if any block was released since the last time."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self.moved, self._releases = recording, recording.moved, -1

    def check(self) -> None:
        """Raise RuntimeError if a block it works on was released."""
        if Block.releases != self._releases:
            self._recording.check()
            self._releases = Block.releases
