"""NVIDIA GPUs: the runtime by CuPy.

`nvrtc.py` compiles the kernels, and they are loaded as a cubin: a GPU runs exactly what a machine without one
compiles. CuPy's own RawModule would add -ftz=true, and f32 numbers below 2**-126 would become 0.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Literal

import numpy as np

from kvgpu import kernels
from kvgpu.runtime import FILLED, Block, Meter, Work
from kvgpu.runtimes import tensor_map
from kvgpu.runtimes.capture import Recorder, Replayable
from kvgpu.runtimes.nvidia import cuda_errors, gpu_state, held_stream, nvrtc
from kvgpu.runtimes.nvidia.cuda_errors import fatal
from kvgpu.runtimes.nvidia.cuda_launch import Kernel, Unreleased
from kvgpu.runtimes.nvidia.held_stream import HeldStream
from kvspec.errors import CannotRun
from kvspec.geometry import Array

INSTALL = "pip install 'kvconform[cupy]' brings it, for CUDA 13"


class CuPyRuntime:
    """The current GPU (CUDA_VISIBLE_DEVICES chooses), with a stream and a memory pool of its own.

    The stream is independent of all others. The pool keeps released memory for the next allocation, which may reuse
    it at once, because one stream does all work in order.
    """

    dialect: Literal["cl", "cuda"] = "cuda"
    gpu = True
    stream_bytes = 4 << 30
    _held: HeldStream | None = None

    def __init__(self) -> None:
        self._cupy = cupy = imported()
        self._cuda, self.errors = cupy.cuda.runtime, cuda_errors.classes(cupy)
        _find_device(cupy)
        self._compiler = nvrtc.version(nvrtc.binding())
        self.meter = Meter()
        self._recorder = Recorder(self.meter)
        self._kernels: dict[str, Kernel] = {}
        try:
            self._begin()
        except self.errors as e:
            raise CannotRun(f"the GPU cannot be used: {e} ({self._versions()})") from e

    def _begin(self) -> None:
        """Make a stream and a pool, and load the kernels."""
        cupy = self._cupy
        self._capability = str(cupy.cuda.Device().compute_capability)
        self.cache_bytes = int(self._cuda.getDeviceProperties(self._cuda.getDevice())["l2CacheSize"])
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._pool = cupy.cuda.MemoryPool()
        self.learn(kernels.source("cuda", "gpu"), kernels.KERNELS)

    def _versions(self) -> str:
        """Name what has to fit together."""
        driver, runtime = (_version(f()) for f in (self._cuda.driverGetVersion, self._cuda.runtimeGetVersion))
        parts = (
            f"driver {driver}",
            f"CUDA runtime {runtime}",
            f"NVRTC {self._compiler}",
            f"CuPy {self._cupy.__version__}",
        )
        return ", ".join((*parts, f"sm_{self._capability}") if hasattr(self, "_capability") else parts)

    def learn(self, text: str, names: Mapping[str, int], shared: int = 0) -> None:
        """Compile and load kernels now: loading at the first launch could meet a full device, or a capture. They
        are launched with `shared` bytes of shared memory."""
        module, driver = self._cupy.cuda.Module(), self._cupy.cuda.driver
        module.load(nvrtc.kept(text, nvrtc.architecture(text, self._capability)))
        for name in names:
            self._kernels[name] = Kernel(driver, module.get_function(name), name, shared)

    def mapped(self, matrix: tensor_map.Matrix) -> tensor_map.TensorMap:
        """Have the driver make a map of a matrix."""
        return tensor_map.encoded(tensor_map.driver(), matrix, matrix.block.handle.ptr)

    def knows(self, kernel: str) -> bool:
        """Tell whether a kernel of that name can be launched."""
        return kernel in self._kernels

    @property
    def clock(self) -> str:
        """How it measures, and what it measures where nothing is done."""
        least = 1e6 * self._holding().least(self._stream)
        way = (
            "CUDA events around work that is queued while a kernel holds the stream: gaps of the host do not count"
        )
        return f"{way}; the launch of an empty kernel takes {least:.1f} us"

    def _holding(self) -> HeldStream:
        if self._held is None:
            self.learn(held_stream.text(), held_stream.KERNELS)
            self._held = HeldStream(
                self._cupy.cuda, lambda kernel, work, args, stream: self._kernels[kernel](work, args, stream)
            )
        return self._held

    @fatal
    def elapsed(self, work: Callable[[], None]) -> float:
        """Measure the seconds that the stream is busy. Work that waits for the stream is timed with its waits."""
        return self._holding().elapsed(work, self._stream)

    @fatal
    def elapsed_on(self, stream: int, work: Callable[[], None]) -> float:
        """Measure the same on a stream of another library, given by its handle."""
        return self._holding().elapsed(work, self._cupy.cuda.ExternalStream(stream))

    def _refuse(self, call: str) -> None:
        """Refuse a call that waits while launches are captured; let a stream that is held go on before it."""
        self._recorder.refuse(call)
        if self._held is not None:
            self._held.release()

    @fatal
    def give_back(self) -> None:
        """Give the memory that the pool keeps for later back to the device."""
        self._pool.free_all_blocks()

    def allocate(self, nbytes: int) -> Block:
        """Allocate memory, from the pool if it has some. Raises MemoryError."""
        self._recorder.refuse("allocate")
        try:
            with self._stream:  # whose memory it is, to the pool
                handle = self._pool.malloc(nbytes)
        except (self._cupy.cuda.memory.OutOfMemoryError, OverflowError) as e:  # a size has 64 bits
            raise MemoryError(f"the device has no room for {nbytes} bytes: {e}") from e
        return Block(handle, nbytes, self.meter)

    @fatal
    def upload(self, source: Array, to: Block) -> None:
        """Copy host bytes to the beginning of a block, and wait."""
        self._refuse("upload")
        kind = self._cuda.memcpyHostToDevice
        self._cuda.memcpyAsync(to.handle.ptr, source.ctypes.data, source.nbytes, kind, self._stream.ptr)
        self.meter.host_to_device += source.nbytes
        self.synchronise()

    @fatal
    def download(self, source: Block, at: int, width: int, height: int = 1, pitch: int = 0) -> Array:
        """Copy lines of bytes to the host, and wait."""
        self._refuse("download")
        found = np.empty((height, width), np.uint8)
        begin, kind = source.handle.ptr + at, self._cuda.memcpyDeviceToHost
        if height == 1 or pitch == width:
            self._cuda.memcpyAsync(found.ctypes.data, begin, found.nbytes, kind, self._stream.ptr)
        else:
            lines = found.ctypes.data, width, begin, pitch, width, height
            self._cuda.memcpy2DAsync(*lines, kind, self._stream.ptr)
        self.synchronise()
        self.meter.device_to_host += found.nbytes
        return found

    @fatal
    def fill(self, to: Block) -> None:
        """Fill by memset."""
        self._cuda.memsetAsync(to.handle.ptr, FILLED, to.nbytes, self._stream.ptr)

    def pinned(self, nbytes: int) -> Block:
        """Allocate memory of the host that the device copies to by itself."""
        return Block(self._cupy.cuda.alloc_pinned_memory(nbytes), nbytes, self.meter)

    @fatal
    def copy(self, source: Block, to: Block) -> None:
        """Copy by memcpy."""
        kind = self._cuda.memcpyDefault
        self._cuda.memcpyAsync(to.handle.ptr, source.handle.ptr, to.nbytes, kind, self._stream.ptr)

    @fatal
    def launch(self, kernel: str, work: Work, *args: Block | int | tensor_map.TensorMap) -> None:
        """Start a kernel, with one item for each word."""
        captured = self._recorder.takes(kernel, work, args)
        self._kernels[kernel](work, args, self._stream.ptr)
        self.meter.launches += not captured
        if self._held is not None and not captured:
            self._held.queued()

    @fatal
    def capture(self, work: Callable[[], None]) -> Replayable:
        """Capture the launches of `work` as a CUDA graph."""
        self._recorder.refuse("capture")
        self._stream.begin_capture()
        try:
            recording = self._recorder.record(work)
        except BaseException:
            with suppress(RuntimeError):  # what `work` raised is what matters
                self._stream.end_capture()
            raise
        graph = self._stream.end_capture()
        return Replayable(self._recorder, Unreleased(recording), lambda: self._replay(graph))

    @fatal
    def _replay(self, graph: Any) -> None:
        graph.launch(self._stream)
        if self._held is not None:
            self._held.queued()

    @fatal
    def synchronise(self) -> None:
        """Wait until everything is done."""
        self._refuse("synchronise")
        self._stream.synchronize()
        self.meter.synchronisations += 1

    def state(self) -> dict[str, str]:
        """Describe the GPU's clocks, temperature, power, and what slows it down."""
        return gpu_state.state(self._cuda.deviceGetPCIBusId(self._cuda.getDevice()))

    def describe(self) -> dict[str, Any]:
        """Describe the GPU, its memory in bytes, and the versions."""
        found = self._cuda.getDeviceProperties(self._cuda.getDevice())
        details = {
            "compute capability": f"{self._capability[:-1]}.{self._capability[-1]}",
            "memory": int(found["totalGlobalMem"]),
            "driver": _version(self._cuda.driverGetVersion()),
            "runtime": _version(self._cuda.runtimeGetVersion()),
            "nvrtc": self._compiler,
            "cupy": self._cupy.__version__,
        }
        return {"device": found["name"].decode(), "details": details}


@cache
def shared() -> CuPyRuntime:
    """Give the process's only runtime."""
    return CuPyRuntime()


def imported() -> Any:
    """Import CuPy without its warnings. Raises CannotRun if it is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("cupy")
    except ImportError as e:
        raise CannotRun(f"CuPy cannot be imported ({str(e).strip().partition(chr(10))[0]}); {INSTALL}") from e


def _find_device(cupy: Any) -> None:
    """Raise CannotRun if there is no driver, or no GPU."""
    cuda = cupy.cuda.runtime
    if cuda.driverGetVersion() == 0:
        raise CannotRun("there is no GPU: NVIDIA's driver is not installed")
    try:
        found = cuda.getDeviceCount()
    except cuda.CUDARuntimeError as e:
        raise CannotRun(f"there is no GPU that CUDA {_version(cuda.runtimeGetVersion())} can use: {e}") from e
    if found == 0:
        raise CannotRun("there is no GPU: NVIDIA's driver finds none")


def _version(number: int) -> str:
    """Write a version number: CUDA gives 13020 for 13.2."""
    return f"{number // 1000}.{number % 1000 // 10}"
