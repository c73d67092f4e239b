"""The CUDA kernels on the CPU: the runtime by a C++ compiler and the shim."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kvgpu import kernels
from kvgpu.runtime import FILLED, Block, Meter, Work
from kvgpu.runtimes import cpp_compiler, launch_shapes, tensor_map
from kvgpu.runtimes.capture import Launch, Recorder, Replayable, recorded
from kvspec.contract.timing import host_cache
from kvspec.geometry import Array


class Memory:
    """Memory of exactly this many bytes, so that a sanitizer sees its end; freed on garbage collection."""

    def __init__(self, library: Any, nbytes: int) -> None:
        self._free = library.shim_free
        self.address = library.shim_allocate(nbytes)
        if not self.address:
            raise MemoryError(f"the machine has no room for {nbytes} bytes")
        whole: Any = (ctypes.c_ubyte * nbytes).from_address(self.address)
        self.bytes = np.frombuffer(whole, np.uint8)

    def __del__(self) -> None:
        if self.address:
            self._free(self.address)


class CudaCPURuntime:
    """Runs the kernels of a CUDA text, each launch to its end, in the shape it would have on a GPU, or by `shape`.

    `text` and `names` are the text and the kernels called in it, each with the number of its arguments that are
    buffers; `sanitizer` is one of `cpp_compiler.SANITIZERS`. With `device` "gpu" texts and shapes are a GPU's.
    """

    dialect: Literal["cl", "cuda"] = "cuda"
    gpu = False
    clock = "wall time: the device is the host, where every thread of a kernel takes its turn"
    stream_bytes = 16 << 20

    def __init__(
        self,
        text: str | None = None,
        names: Mapping[str, int] = kernels.KERNELS,
        sanitizer: str = "",
        shape: launch_shapes.Shape = launch_shapes.gpu,
        device: kernels.Device = "any",
    ) -> None:
        self._shape = launch_shapes.on_a_gpu if device == "gpu" else launch_shapes.alike(shape)
        self.cache_bytes = host_cache()
        self._compiler, self._sanitizer = cpp_compiler.find(), sanitizer
        self._library = self._made(
            kernels.source("cuda", device) if text is None else text, names, cpp_compiler.FLAGS
        )
        self._kernels = {name: Kernel(self._library, name, buffers) for name, buffers in names.items()}
        self.meter = Meter()
        self._recorder = Recorder(self.meter)

    def _made(self, text: str, names: Mapping[str, int], flags: tuple[str, ...], shared: int = 0) -> Any:
        program = cpp_compiler.Program(text, tuple(names), self._sanitizer, flags, shared)
        return _loaded(cpp_compiler.library(program, self._compiler))

    def learn(
        self, text: str, names: Mapping[str, int], flags: tuple[str, ...] = cpp_compiler.FLAGS, shared: int = 0
    ) -> None:
        """Compile another text. Its kernels are launched with `shared` bytes of shared memory."""
        library = self._made(text, names, flags, shared)
        self._kernels |= {name: Kernel(library, name, buffers) for name, buffers in names.items()}

    def mapped(self, matrix: tensor_map.Matrix) -> tensor_map.TensorMap:
        """Make a map that the emulation reads."""
        return tensor_map.emulated(matrix, matrix.block.handle.address)

    def knows(self, kernel: str) -> bool:
        """Tell whether a kernel of that name can be launched."""
        return kernel in self._kernels

    def elapsed(self, work: Callable[[], None]) -> float:
        """Measure the seconds of the work: every launch is done when it returns."""
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def allocate(self, nbytes: int) -> Block:
        """Allocate memory, aligned to 64 bytes. Raises MemoryError."""
        self._recorder.refuse("allocate")
        return Block(Memory(self._library, nbytes), nbytes, self.meter)

    def upload(self, source: Array, to: Block) -> None:
        """Copy contiguous host bytes to the beginning of a block. Raises ValueError if there are none."""
        self._recorder.refuse("upload")
        _demand_some(source.nbytes)
        to.handle.bytes[: source.nbytes] = source.reshape(-1).view(np.uint8)
        self.meter.host_to_device += source.nbytes
        self.meter.synchronisations += 1

    def download(self, source: Block, at: int, width: int, height: int = 1, pitch: int = 0) -> Array:
        """Copy lines of bytes to a new array. Raises ValueError if there are none."""
        self._recorder.refuse("download")
        _demand_some(height * width)
        lines: Array = np.ndarray((height, width), np.uint8, source.handle.bytes, at, (pitch, 1)).copy()
        self.meter.device_to_host += lines.nbytes
        self.meter.synchronisations += 1
        return lines

    def fill(self, to: Block) -> None:
        """Fill the host's memory."""
        to.handle.bytes[:] = FILLED

    def copy(self, source: Block, to: Block) -> None:
        """Copy the host's memory."""
        to.handle.bytes[:] = source.handle.bytes

    def launch(self, kernel: str, work: Work, *args: Block | int | tensor_map.TensorMap) -> None:
        """Run a kernel. Raises RuntimeError if its threads do not meet at a barrier."""
        if not self._recorder.takes(kernel, work, args):
            self._start(Launch(kernel, work, args))
            self.meter.launches += 1

    def _start(self, launch: Launch) -> None:
        self._kernels[launch.kernel](*self._shape(launch.kernel, launch.work), *launch.args)

    def run(
        self,
        kernel: str,
        group: launch_shapes.Axes,
        groups: launch_shapes.Axes,
        *args: Block | int | tensor_map.TensorMap,
    ) -> None:
        """Run a kernel in the given shape: threads of a block, and blocks."""
        self._kernels[kernel](group, groups, *args)

    def capture(self, work: Callable[[], None]) -> Replayable:
        """Note the launches of `work`, to run them at each replay."""
        return recorded(self._recorder, work, self._start)

    def synchronise(self) -> None:
        """Do nothing: launches are done when they return."""
        self._recorder.refuse("synchronise")
        self.meter.synchronisations += 1

    def describe(self) -> dict[str, Any]:
        """Describe the compiler, and how kernels are compiled and launched."""
        details = {
            "compiler": self._compiler.version,
            "flags": " ".join((*cpp_compiler.FLAGS, *cpp_compiler.SANITIZERS[self._sanitizer])),
            "sanitizer": self._sanitizer or "none",
            "shapes": "as on a GPU: a thread for each word",
        }
        return {"device": f"the CUDA kernels on the CPU, {self._compiler.label}", "details": details}


def _demand_some(nbytes: int) -> None:
    """Refuse to copy nothing, as OpenCL does."""
    if nbytes < 1:
        raise ValueError("there is nothing to copy")


class Kernel:
    """A compiled kernel; its first `buffers` arguments are buffers, the others integers."""

    def __init__(self, library: Any, name: str, buffers: int) -> None:
        self.name, self._library = name, library
        self._body = ctypes.cast(getattr(library, f"call_{name}"), ctypes.c_void_p)
        self._arity = int(getattr(library, f"arity_{name}")())
        self._cells = ctypes.c_int64 * (6 + self._arity)
        assert buffers <= self._arity, f"{name} has {self._arity} arguments, fewer than {buffers} buffers"

    def __call__(
        self, group: launch_shapes.Axes, groups: launch_shapes.Axes, *args: Block | int | tensor_map.TensorMap
    ) -> None:
        """Run it to its end. Raises RuntimeError for what no GPU launches: no blocks, or too many along an axis."""
        cells = list(tensor_map.flat(args))
        if len(cells) != self._arity:
            raise TypeError(f"{self.name} takes {self._arity} arguments, {len(cells)} were given")
        if min(groups) < 1 or max(groups[1:]) > launch_shapes.MOST_GROUPS:
            raise RuntimeError(f"{self.name}: no GPU launches {groups} blocks")
        for i, a in enumerate(args):
            if isinstance(a, Block) and a.handle is None:
                raise RuntimeError(f"launch: argument {i} of {self.name} was released")
        values = (a.handle.address if isinstance(a, Block) else a for a in cells)
        if self._library.shim_launch(self._body, self._cells(*group, *groups, *values)):
            raise RuntimeError(f"{self.name}: {self._library.shim_message().decode()}")


@cache
def _loaded(path: Path) -> Any:
    """Load the library. Calls hold Python's lock, because all threads share the scheduler's state."""
    library = ctypes.PyDLL(str(path))
    library.shim_allocate.argtypes, library.shim_allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
    library.shim_free.argtypes, library.shim_free.restype = [ctypes.c_void_p], None
    library.shim_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.shim_message.restype = ctypes.c_char_p
    return library
