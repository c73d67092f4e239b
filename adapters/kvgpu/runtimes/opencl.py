"""OpenCL: the runtime by PyOpenCL."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np

from kvgpu import kernels
from kvgpu.runtime import FILLED, Block, Meter, Started, Work, completed
from kvgpu.runtimes import build_folder, huge_pages, launch_shapes, opencl_devices, opencl_vendors
from kvgpu.runtimes.capture import Recorder, Replayable, recorded
from kvgpu.runtimes.opencl_launches import Arguments, Compiled, Ready, setter
from kvgpu.runtimes.opencl_queues import Queues, small, words
from kvspec.contract.timing import host_cache, host_stream
from kvspec.errors import CannotRun
from kvspec.geometry import Array

STREAMED = {"a GPU": 4 << 30, "Oclgrind, a simulator on the CPU": 16 << 20}
"""Bytes to stream when measuring the limits of a kind of device; for any other, as many as on the host."""

HOSTED = 1 << 20
"""Least bytes for which a CPU's kernels write to the host's memory: making a buffer of it takes as long as a short
copy."""


PAST_FROM = 32 << 20
"""Bytes from which on a kernel on a CPU writes past the caches."""

KEPT = 64 << 20
"""Bytes that the pool may keep for later, whatever is in use."""

HALVED = 1 << 22
"""Bytes from which on a download is copied by two threads: the second one takes 30 to 50 us to wake."""


class HostBlock(Block):
    """Memory of the host that kernels write to. It is no memory of the device, so no meter counts it."""

    def __init__(self, handle: Any, array: Array) -> None:
        super().__init__(handle, array.nbytes, Meter())
        self.array = array


class OpenCLRuntime:
    """One device with one in-order queue.

    Launches are shaped for the device, or by `shape`. `text` and `names` are the text and the kernels called in it,
    each with the number of its arguments that are buffers. `workers` is how many work-items keep a CPU busy;
    `lanes` is how many floats a vector may have (see `opencl_devices`).

    One thread at a time may call it or what shares it. A launch sets the arguments of a kernel that other launches
    use too. Also, two threads within PoCL's queues can wait for each other for good.
    """

    dialect: Literal["cl", "cuda"] = "cl"
    clock = "profiling events: the time that commands ran on the device, waiting apart"

    def __init__(
        self,
        wanted: str | None = None,
        text: str | None = None,
        names: Mapping[str, int] = kernels.KERNELS,
        shape: launch_shapes.Shape | None = None,
    ) -> None:
        self._cl = cl = imported()
        self._choice = opencl_devices.choose(cl, wanted)
        self.meter = Meter()
        self._recorder = Recorder(self.meter)
        self._context, taken = self._choice.context, self._choice.taken
        self._queues = Queues(cl, self._context, taken.device, taken.caller)
        self._events: list[Any] | None = None
        self._examine(taken)
        self._shape = self._shapes(shape)
        own: kernels.Device = "gpu" if self.gpu else "cpu" if taken.kind in opencl_devices.CPUS else "any"
        device = own if shape is None else "any"
        if text is None and device == "cpu":
            names = {**names, **{name: names[plain] for name, plain in kernels.PAST.items()}}
        self._kernels = self._compiled(kernels.source("cl", device) if text is None else text, names)
        self._prepared = lru_cache(1024)(self._prepare)
        self._pool: Any = None
        self._new_buffer = self._allocator(taken.kind)
        on_a_cpu = taken.kind in opencl_devices.CPUS
        self._mapping: Any = cl.CommandQueue(self._context, taken.device) if on_a_cpu else None
        self._asked: set[int] = set()

    def _examine(self, taken: opencl_devices.Candidate) -> None:
        """Set what callers may ask of the device."""
        self.gpu, self.lanes = taken.kind == "a GPU", taken.lanes
        self.cpu = not self.gpu
        self.cache_bytes = taken.device.global_mem_cache_size if self.gpu else host_cache()
        self.stream_bytes = min(STREAMED.get(taken.kind) or host_stream(), taken.device.global_mem_size // 16)
        simulated = taken.kind.startswith("Oclgrind")
        self.workers = 1 if simulated else launch_shapes.ITEMS * taken.device.max_compute_units

    def _shapes(self, shape: launch_shapes.Shape | None) -> launch_shapes.ShapeOfKernel:
        """Give the shape of every kernel: the given one, or what suits the device."""
        if shape is None and self.cpu:
            return launch_shapes.on_a_cpu(self.workers)
        return launch_shapes.alike(shape) if shape else launch_shapes.on_a_gpu

    def _allocator(self, kind: str) -> Callable[[int], Any]:
        """Give the function that allocates: from a pool, because the first write to new memory takes several times
        as long as the next. A simulator gets a new buffer each time, so that it sees where the buffer ends."""
        tools = self._cl.tools
        if kind.startswith("Oclgrind"):
            return tools.ImmediateAllocator(self._queues.own)  # type: ignore[no-any-return]
        self._pool = tools.MemoryPool(tools.ImmediateAllocator(self._queues.own))
        return self._pool.allocate  # type: ignore[no-any-return]

    def give_back(self) -> None:
        """Give the memory that the pool keeps for later back to the device."""
        if self._pool is not None:
            self._pool.free_held()
            self._asked.clear()

    def _keep_little(self) -> None:
        """Give back what the pool keeps where that is much, and more than what is in use."""
        if self._pool is not None:
            active = self._pool.active_bytes
            if self._pool.managed_bytes - active > max(KEPT, active):
                self.give_back()

    def _compiled(self, text: str, names: Mapping[str, int]) -> dict[str, Compiled]:
        """Compile a text; give each kernel in it with what sets its arguments."""
        program = opencl_devices.build(self._cl, self._context, text)
        made = {name: self._cl.Kernel(program, name) for name in names}
        return {name: (kernel, setter(kernel, names[name]), names[name]) for name, kernel in made.items()}

    def allocate(self, nbytes: int) -> Block:
        """Allocate memory. Raises MemoryError."""
        self._keep_little()
        made = self._room(nbytes, self._new_buffer)
        if self._mapping is not None and nbytes >= huge_pages.LARGE and made.int_ptr not in self._asked:
            self._ask_for_huge_pages(made, nbytes)
        return Block(made, nbytes, self.meter)

    def _ask_for_huge_pages(self, made: Any, nbytes: int) -> None:
        """Ask once for each buffer, before it is written; the pool gives it out again."""
        self._asked.add(made.int_ptr)
        with suppress(self._cl.Error):  # it is advice, and no reason to fail
            self._mapped(self._mapping, made, nbytes, lambda address: huge_pages.ask(address, nbytes))

    def _mapped(self, queue: Any, made: Any, nbytes: int, use: Callable[[int], None]) -> int:
        """Map a buffer while its address in the host's memory is used, and give that."""
        there, _ = self._cl.enqueue_map_buffer(queue, made, self._cl.map_flags.READ, 0, (nbytes,), np.uint8)
        address: int = there.ctypes.data
        use(address)
        there.base.release(queue)
        queue.finish()
        return address

    def hosted(self, nbytes: int) -> HostBlock | None:
        """Give new memory of the host as a block, on a CPU where it is large. Raises MemoryError."""
        if not self.cpu or nbytes < HOSTED:
            return None
        array, flags = np.empty(nbytes, np.uint8), self._cl.mem_flags.READ_WRITE | self._cl.mem_flags.USE_HOST_PTR
        return HostBlock(self._room(nbytes, lambda _: self._cl.Buffer(self._context, flags, hostbuf=array)), array)

    def pinned(self, nbytes: int) -> Block | None:
        """Allocate memory of the host that the device copies to by itself. None on a CPU. Raises MemoryError."""
        flags = self._cl.mem_flags.READ_WRITE | self._cl.mem_flags.ALLOC_HOST_PTR
        made = None if self.cpu else self._room(nbytes, lambda n: self._cl.Buffer(self._context, flags, n))
        return None if made is None else Block(made, nbytes, self.meter)

    def _room(self, nbytes: int, make: Callable[[int], Any]) -> Any:
        self._recorder.refuse("allocate")
        try:
            return make(nbytes)
        except self._cl.Error as e:
            raise MemoryError(f"the device has no room for {nbytes} bytes: {e}") from e

    def upload(self, source: Array, to: Block) -> None:
        """Copy host bytes to the beginning of a block, and wait."""
        self._recorder.refuse("upload")
        self._watched(self._cl.enqueue_copy(self._queues.waiting(), to.handle, source))
        self.meter.host_to_device += source.nbytes
        self.meter.synchronisations += 1

    def download(self, source: Block, at: int, width: int, height: int = 1, pitch: int = 0) -> Array:
        """Copy lines of bytes to the host, and wait."""
        self._recorder.refuse("download")
        if isinstance(source, HostBlock) and (height == 1 or pitch == width):
            return self._in_place(source, at, width, height)
        found = np.empty((height, width), np.uint8)
        queue = self._queues.waiting()
        if queue is not self._queues.own and found.nbytes >= HALVED:
            self._by_halves(queue, found, source, at, pitch or width)
        else:
            self._lines(queue, found, source, at, pitch or width)
        self.meter.device_to_host += found.nbytes
        self.meter.synchronisations += 1
        return found

    def _in_place(self, source: HostBlock, at: int, width: int, height: int) -> Array:
        """Wait for the kernels, and give the host's own memory, without a copy."""
        self._queues.finish()
        queue, flags = self._queues.waiting(), self._cl.map_flags
        there, _ = self._cl.enqueue_map_buffer(queue, source.handle, flags.READ, at, (height, width), np.uint8)
        there.base.release(queue)
        self.meter.device_to_host += height * width
        self.meter.synchronisations += 1
        return source.array[at : at + height * width].reshape(height, width)

    def _by_halves(self, queue: Any, found: Array, source: Block, at: int, pitch: int) -> None:
        """Copy one half on the calling thread while a thread of the device copies the other: one thread alone
        reaches about half of the memory's speed."""
        height = len(found)
        parts = np.array_split(found, 2, axis=0 if height > 1 else 1)
        behind = at + (len(parts[0]) * pitch if height > 1 else parts[0].size)
        other = self._lines(self._queues.own, parts[1], source, behind, pitch, wait=False)
        self._queues.own.flush()
        self._lines(queue, parts[0], source, at, pitch)
        other.wait()

    def _lines(self, queue: Any, found: Array, source: Block, at: int, pitch: int, wait: bool = True) -> Any:
        height, width = found.shape
        lines: dict[str, Any] = {"src_offset": at}
        if height > 1 and pitch != width:
            origins = {"buffer_origin": (at, 0, 0), "host_origin": (0, 0, 0)}
            pitches = {"buffer_pitches": (pitch,), "host_pitches": (width,)}
            lines = {"region": (width, height, 1), **origins, **pitches}
        event = self._cl.enqueue_copy(queue, found, source.handle, is_blocking=wait, **lines)
        self._watched(event)
        return event

    def fill(self, to: Block) -> None:
        """Enqueue a fill."""
        self._watched(
            self._cl.enqueue_fill_buffer(self._queues.streaming(), to.handle, np.uint32(FILLED), 0, to.nbytes)
        )

    def copy(self, source: Block, to: Block) -> None:
        """Enqueue a copy."""
        self._watched(
            self._cl.enqueue_copy(self._queues.streaming(), to.handle, source.handle, byte_count=to.nbytes)
        )

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel in the shape that suits the device."""
        if not self._recorder.takes(kernel, work, args):
            self._start(kernel, work, args)
            self.meter.launches += 1

    def _start(self, kernel: str, work: Work, args: Arguments) -> None:
        ready = self._prepared(kernel, work)
        self._enqueue(self._queues.launching(small(ready.words, args)), ready, kernel, args)

    def _prepare(self, kernel: str, work: Work) -> Ready:
        """Give the kernel that does a launch, in its shape. A CPU writes much past its caches."""
        past, moved = f"{kernel}_past", 16 * work.words * work.rows * work.heads * work.parts
        name = past if moved >= PAST_FROM and past in self._kernels else kernel
        return Ready(self._cl, self._kernels[name], self._shape(kernel, work), words(kernel, work))

    def prepared(self, kernel: str, work: Work, numbers: tuple[int, ...], changing: tuple[int, ...]) -> Started:
        """Prepare a launch all of whose integers are these, but for those at the places `changing`."""
        whole = self._prepared(kernel, work)
        made, _, buffers = whole.compiled
        fixed = {buffers + i: number for i, number in enumerate(numbers) if i not in changing}
        ready = Ready(self._cl, (made, setter(made, buffers, fixed), buffers), whole.shape, whole.words)
        recorder, launching, enqueue, meter = self._recorder, self._queues.launching, self._enqueue, self.meter
        alone = whole.words is not None and small(whole.words, ())

        def start(*args: Block | int) -> None:
            if recorder.capturing:
                self.launch(kernel, work, *completed(numbers, changing, args))
            else:
                enqueue(launching(alone), ready, kernel, args)
                meter.launches += 1

        return start

    def run(self, kernel: str, group: launch_shapes.Axes, groups: launch_shapes.Axes, *args: Block | int) -> None:
        """Start a kernel in the given shape: items of a group, and groups."""
        ready = Ready(self._cl, self._kernels[kernel], (group, groups))
        self._enqueue(self._queues.streaming(), ready, kernel, args)

    def _enqueue(self, queue: Any, ready: Ready, kernel: str, args: Arguments) -> None:
        try:
            ready.put(*args)
            event = ready.enqueue(queue)
            if queue is self._queues.own:
                self._queues.newest = event
            if self._events is not None:
                self._events.append(event)
        except self._cl.MemoryError as e:
            raise MemoryError(f"the device has no room for what {kernel} works on: {e}") from e

    def _watched(self, event: Any) -> None:
        """Keep the event of a command while `elapsed` measures."""
        self._queues.newest = event
        if self._events is not None:
            self._events.append(event)

    def elapsed(self, work: Callable[[], None]) -> float:
        """Give the seconds in which commands of this work ran on the device. Seconds in which two ran at once
        count once."""
        self._queues.finish()
        events = self._events = []
        try:
            work()
            self._queues.finish()
        finally:
            self._events = None
        ran, until = 0, 0
        for begin, end in sorted((e.profile.start, e.profile.end) for e in events):
            ran += max(0, end - max(begin, until))
            until = max(until, end)
        return ran * 1e-9

    def learn(self, text: str, names: Mapping[str, int]) -> None:
        """Compile another text, so that its kernels can be launched too."""
        self._kernels |= self._compiled(text, names)
        self._prepared.cache_clear()

    def knows(self, kernel: str) -> bool:
        """Tell whether a kernel of that name can be launched."""
        return kernel in self._kernels

    def capture(self, work: Callable[[], None]) -> Replayable:
        """Note the launches of `work`; a replay enqueues them one by one."""
        return recorded(self._recorder, work, lambda launch: self._start(*launch))

    def synchronise(self) -> None:
        """Wait until everything is done."""
        self._recorder.refuse("synchronise")
        self._queues.finish()
        self.meter.synchronisations += 1

    def describe(self) -> dict[str, Any]:
        """Describe the device, how it was chosen, and the versions."""
        device = self._choice.taken.device
        details = {**self._choice.describe(), "driver": device.driver_version, "pyopencl": self._cl.VERSION_TEXT}
        return {"device": self._choice.taken.label, "details": details}


@cache
def shared(wanted: str) -> OpenCLRuntime:
    """Give the process's runtime for each choice of device: finding and compiling take a second."""
    return OpenCLRuntime(wanted)


def imported() -> Any:
    """Import PyOpenCL without warnings or writes to the home folder. Raises CannotRun if it is missing."""
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    if opencl_devices.has_all_cores():
        os.environ.setdefault(opencl_devices.AFFINITY, "1")
    if "POCL_CACHE_DIR" not in os.environ:
        os.environ["POCL_CACHE_DIR"] = str(build_folder.folder("pocl"))
    opencl_vendors.announce()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pyopencl
    except ImportError as e:
        raise CannotRun(f"PyOpenCL cannot be imported ({e}); {opencl_devices.INSTALL}") from e
    return pyopencl
