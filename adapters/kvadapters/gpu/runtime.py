"""What a device must offer so that the caches of this package run on it: methods, buffers of bytes, a meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from kvspec.geometry import Array


@dataclass
class Meter:
    """What was done so far. Bytes are bytes; the rest are counts. `live_bytes` is what is allocated now.

    A synchronisation is any call that waits for the device; blocking uploads and downloads are among them.
    """

    host_to_device: int = 0
    device_to_host: int = 0
    device_to_device: int = 0
    launches: int = 0
    allocations: int = 0
    frees: int = 0
    live_bytes: int = 0
    synchronisations: int = 0

    def reading(self) -> dict[str, int]:
        """All counts as they stand."""
        return dict(vars(self))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing meanwhile: what is done for a check is not what the cache costs."""
        before = self.reading()
        try:
            yield
        finally:
            vars(self).update(before)

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """What changed since an earlier reading: the counts that differ, by how much."""
        return {k: v - before[k] for k, v in vars(self).items() if v != before[k]}


class Block:
    """A piece of device memory. `handle` is the runtime's own; it is let go when released or forgotten."""

    def __init__(self, handle: Any, nbytes: int, meter: Meter) -> None:
        self.handle, self.nbytes, self._meter = handle, nbytes, meter
        meter.allocations += 1
        meter.live_bytes += nbytes

    def __repr__(self) -> str:
        return "<Block>"  # without an address, so that a message is the same in every process

    def release(self) -> None:
        """Give the memory back; once is enough, more does nothing. Work already launched still finds it."""
        if self.handle is not None:
            self.handle = None
            self._meter.frees += 1
            self._meter.live_bytes -= self.nbytes

    def __del__(self) -> None:
        self.release()


class Work(NamedTuple):
    """The size of a launch: `words` of a row, rows of a head, heads of a part, parts (keys and values)."""

    words: int
    rows: int
    heads: int = 1
    parts: int = 1


class Captured(Protocol):
    """Launches that are done together, in the order in which they were captured."""

    def replay(self) -> None:
        """Do them once more: one launch to the meter. Raises RuntimeError if one of their blocks was released."""


class Runtime(Protocol):
    """A device. Calls take effect in order; launches may be asynchronous, uploads and downloads wait."""

    meter: Meter
    dialect: Literal["cl", "cuda"]
    """The dialect of its kernels' text."""
    clock: str
    """In words, what `elapsed` measures."""
    stream_bytes: int
    """Bytes that are read, written or copied to measure the limits of the device: far more than its caches hold."""

    def allocate(self, nbytes: int) -> Block:
        """New memory, aligned to 16 bytes at least. Raises MemoryError, and has then changed nothing."""

    def upload(self, source: Array, to: Block) -> None:
        """Copy contiguous host bytes, some, to the beginning of a block; `source` may be changed afterwards."""

    def download(self, source: Block, at: int, width: int, height: int = 1, pitch: int = 0) -> Array:
        """A new array `[height, width]` of bytes, some: line i is the `width` bytes from `at + i * pitch` on."""

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel of `kernels.source`. Integers are 64 bits wide. Any launch shape does all the work."""

    def capture(self, work: Callable[[], None]) -> Captured:
        """Run `work`, which does nothing but launch kernels, without doing it: what comes back does it, as often
        as asked. Blocks and integers are those of now; what the blocks hold is read anew each time. Until `work`
        returns, any call but `launch` and `describe` raises RuntimeError.
        """

    def synchronise(self) -> None:
        """Wait until everything is done."""

    def elapsed(self, work: Callable[[], None]) -> float:
        """Do the work, wait for the device, and give the seconds it was busy with it."""

    def learn(self, text: str, names: Mapping[str, int]) -> None:
        """Compile another text, and be able to launch these kernels of it, each with the number of its buffers."""

    def describe(self) -> Mapping[str, Any]:
        """The device in words under "device"; whatever else is worth knowing, as JSON, under "details"."""
