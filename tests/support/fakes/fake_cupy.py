"""A stand-in for the package `cupy`: the few names the runtime uses, and kernels compiled for the CPU.

It is lazier than a GPU may be: nothing enqueued happens before somebody waits for the stream. Whoever reads the
host's side too early, or changes it too early, is sure to be seen. Memory given back goes to whoever asks next.
What the package itself does not have begins with an underscore.
"""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from kvgpu import kernels
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.fast.cuda_fast import FastCuPyRuntime
from kvgpu.runtimes.nvidia import nvrtc
from kvgpu.runtimes.nvidia.cupy import CuPyRuntime

Work = Callable[[], None]


class CUDARuntimeError(RuntimeError):
    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class CUDADriverError(CUDARuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class Stream:
    """Calls in order, held back until somebody waits."""

    _current: Stream | None = None

    def __init__(self, non_blocking: bool = False) -> None:
        assert non_blocking, "a stream that waits for the null stream"
        self.waiting: list[Work] = []
        self.captured: list[Work] | None = None
        self.waits = 0
        self.ptr = id(self)
        STREAMS[self.ptr] = self

    def __enter__(self) -> Stream:
        Stream._current = self
        return self

    def __exit__(self, *_: object) -> None:
        Stream._current = None

    def _enqueue(self, work: Work) -> None:
        (self.waiting if self.captured is None else self.captured).append(work)

    def synchronize(self) -> None:
        if self.captured is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        self.waits += 1
        while self.waiting:
            self.waiting.pop(0)()

    def begin_capture(self, mode: int | None = None) -> None:
        if self.captured is not None:
            raise CUDARuntimeError("cudaErrorIllegalState")
        self.captured = []

    def end_capture(self) -> Graph:
        if self.captured is None:
            raise CUDARuntimeError("cudaErrorIllegalState")
        graph, self.captured = Graph(self.captured), None
        return graph


STREAMS: dict[int, Stream] = {}


def ExternalStream(ptr: int) -> Stream:
    return STREAMS[ptr]


class PinnedMemory(bytearray):
    """Memory of the host: `ptr` is its address to both sides."""

    @property
    def ptr(self) -> int:
        return int(np.frombuffer(self, np.uint8).ctypes.data)


class Graph:
    def __init__(self, works: list[Work]) -> None:
        self.works = works

    def launch(self, stream: Stream) -> None:
        for work in self.works:
            stream._enqueue(work)


class Event:
    """A mark in a stream: the device comes to it when it has done all that was before it."""

    def __init__(self) -> None:
        self.reached: float | None = None

    def record(self, stream: Stream) -> None:
        self.stream = stream
        stream._enqueue(lambda: setattr(self, "reached", time.perf_counter()))

    def synchronize(self) -> None:
        self.stream.synchronize()


def get_elapsed_time(start: Event, end: Event) -> float:
    assert start.reached is not None and end.reached is not None, "cudaErrorNotReady"
    return (end.reached - start.reached) * 1e3


class MemoryPointer:
    """Gives its memory back to the pool when nobody holds it any more."""

    def __init__(self, memory: Any, pool: MemoryPool) -> None:
        self._memory, self._pool = memory, pool
        self.ptr = memory.ctypes.data

    def __del__(self) -> None:
        self._pool.free.append(self._memory)


class MemoryPool:
    """`_room` is what the device has, in bytes."""

    _room = 1 << 26

    def __init__(self) -> None:
        self.free: list[Any] = []
        self.taken = 0

    def malloc(self, size: int) -> MemoryPointer:
        assert Stream._current is not None, "memory of the null stream may be reused while ours still works on it"
        if size >= 1 << 63:
            raise OverflowError("Python int too large to convert to C ssize_t")
        for i, memory in enumerate(self.free):
            if memory.nbytes == size:
                return MemoryPointer(self.free.pop(i), self)
        if self.taken + size > self._room:
            raise OutOfMemoryError(f"Out of memory allocating {size} bytes")
        self.taken += size
        return MemoryPointer(np.full(size, 0xAB, np.uint8), self)


FUNCTIONS: dict[int, Function] = {}

PLAIN = 48 << 10
"""Bytes of shared memory that a launch may have without asking before."""


class Function:
    """`_most` is how many bytes of shared memory were asked for."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name, self._most = text, name, PLAIN
        self.ptr = id(self)
        FUNCTIONS[self.ptr] = self

    def _enqueue(self, grid: Any, block: Any, shared: int, stream: Stream, cells: int) -> None:
        assert math.prod(block) <= 1024 and max(grid[1:]) <= 65535, "CUDA_ERROR_INVALID_VALUE"
        assert shared <= self._most, "CUDA_ERROR_INVALID_VALUE"
        library = _compiled_for_the_cpu(self.text, self.name, shared)
        pointers = (ctypes.c_void_p * library._kernels[self.name]._arity).from_address(cells)
        values = [ctypes.c_int64.from_address(p or 0).value for p in pointers]
        stream._enqueue(lambda: library.run(self.name, block, grid, *values))


@cache
def _compiled_for_the_cpu(text: str, name: str, shared: int) -> CudaCPURuntime:
    """The kernels of a text."""
    if any(name in names for names in (kernels.LIMITS, kernels.KERNELS)):
        return _library(text)
    library = CudaCPURuntime()
    library.learn(text, {name: 0}, shared=shared)
    return library


@cache
def _library(text: str) -> CudaCPURuntime:
    names = next(names for names in (kernels.LIMITS, kernels.KERNELS) if f" {next(iter(names))}(" in text)
    return CudaCPURuntime(text, names)


class Module:
    """The text, unlike a cubin, tells what to compile."""

    def load(self, cubin: bytes) -> None:
        self.text = cubin.decode()
        if self.text == "for another driver":
            raise CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image", 209)

    def get_function(self, name: str) -> Function:
        return Function(self.text, name)


def launchKernel(function: int, *shape: int) -> None:
    gx, gy, gz, x, y, z, shared, stream, cells, extra = shape
    assert stream in STREAMS and extra == 0, "launched on the null stream"
    FUNCTIONS[function]._enqueue((gx, gy, gz), (x, y, z), shared, STREAMS[stream], cells)


def funcSetAttribute(function: int, attribute: int, value: int) -> None:
    assert attribute == 8 and value <= 99 << 10, "CUDA_ERROR_INVALID_VALUE"
    FUNCTIONS[function]._most = value


SIZES = {
    "totalGlobalMem": 1 << 26,
    "l2CacheSize": 1 << 20,
    "multiProcessorCount": 4,
    "sharedMemPerMultiprocessor": 228 << 10,
}


class Runtime:
    """`cupy.cuda.runtime`. `driver` is 0 where there is none, `fails` what counting the devices raises, `busy` the
    status with which asking for a device's properties fails."""

    CUDARuntimeError = CUDARuntimeError
    memcpyHostToDevice, memcpyDeviceToHost, memcpyDefault = 1, 2, 4

    def __init__(self, driver: int = 13000, devices: int = 1, fails: str = "", busy: int = 0) -> None:
        self._driver, self._devices, self._fails, self._busy = driver, devices, fails, busy

    def driverGetVersion(self) -> int:
        return self._driver

    def runtimeGetVersion(self) -> int:
        return 13020

    def getDeviceCount(self) -> int:
        if self._fails:
            raise CUDARuntimeError(self._fails)
        return self._devices

    def getDevice(self) -> int:
        return 0

    def deviceGetPCIBusId(self, device: int) -> str:
        return "0000:04:00.0"

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        if self._busy:
            raise CUDARuntimeError("cudaErrorDevicesUnavailable: busy or unavailable", self._busy)
        return {"name": b"NVIDIA Stand-In", **SIZES}

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        self.memcpy2DAsync(dst, size, src, size, size, 1, kind, stream)

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:
        STREAMS[stream]._enqueue(lambda: ctypes.memset(ptr, value, size) and None)

    def memcpy2DAsync(
        self, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
    ) -> None:
        assert kind in (self.memcpyHostToDevice, self.memcpyDeviceToHost, self.memcpyDefault)
        assert width <= min(dpitch, spitch), "cudaErrorInvalidPitchValue"

        def copy() -> None:
            for line in range(height):
                ctypes.memmove(dst + line * dpitch, src + line * spitch, width)

        STREAMS[stream]._enqueue(copy)


def package(**runtime: Any) -> Any:
    """What `import cupy` gives, on a machine like this."""
    cuda = SimpleNamespace(
        runtime=Runtime(**runtime),
        driver=SimpleNamespace(
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            funcSetAttribute=funcSetAttribute,
            launchKernel=launchKernel,
            CUDADriverError=CUDADriverError,
        ),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        Device=lambda: SimpleNamespace(compute_capability="90"),
        Stream=Stream,
        ExternalStream=ExternalStream,
        alloc_pinned_memory=lambda nbytes: PinnedMemory(nbytes),
        MemoryPool=MemoryPool,
        Module=Module,
        Event=Event,
        get_elapsed_time=get_elapsed_time,
    )
    return SimpleNamespace(__version__="14.2.0", cuda=cuda)


@contextmanager
def installed(**runtime: Any) -> Iterator[None]:
    """CuPy and NVRTC are there, on a machine like this; a cubin is the text itself."""
    binding = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
    with (
        mock.patch.dict(sys.modules, {"cupy": package(**runtime)}),
        mock.patch.object(nvrtc, "kept", _kept),
        mock.patch.object(nvrtc, "binding", return_value=binding),
    ):
        yield


def _kept(text: str, architecture: str) -> bytes:
    assert architecture == "sm_90"
    return text.encode()


@cache
def runtime() -> CuPyRuntime:
    """One for all tests."""
    with installed():
        return CuPyRuntime()


@cache
def fast_runtime() -> FastCuPyRuntime:
    """The one of `cupy-fast`."""
    with installed():
        return FastCuPyRuntime()
