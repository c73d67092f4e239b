"""The interface of a device on which this package's caches run: methods, buffers of bytes, a meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from kvspec.geometry import Array, Config

FILLED = 77
"""What `Runtime.fill` writes; any number would do."""


@dataclass
class Meter:
    """Counts of the work so far, and of bytes where the name says so. `live_bytes` are the bytes allocated now.

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
        """Give all current counts."""
        return dict(vars(self))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop counting meanwhile: work for a check is not a cost of the cache."""
        before = self.reading()
        try:
            yield
        finally:
            vars(self).update(before)

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """Give the counts that changed since an earlier reading, and by how much."""
        return {k: v - before[k] for k, v in vars(self).items() if v != before[k]}


class Block:
    """A piece of device memory. `handle` is the runtime's own; it is freed when the block is released or
    garbage-collected. `releases` counts the releases of all blocks."""

    releases: ClassVar[int] = 0
    reached: Array | None = None
    """Its bytes where they lie, `[nbytes]`, once the host has reached them."""
    numbers: Array | None = None
    """The same as numbers, of a block of nothing else, once the host has written or read any of them."""

    def __init__(self, handle: Any, nbytes: int, meter: Meter) -> None:
        self.handle, self.nbytes, self._meter = handle, nbytes, meter
        meter.allocations += 1
        meter.live_bytes += nbytes

    def __repr__(self) -> str:
        return "<Block>"  # without an address, so that a message is the same in every process

    def release(self) -> None:
        """Release the memory; releasing again does nothing. Work already launched may still use it."""
        if self.handle is not None:
            self.handle = self.reached = self.numbers = None
            Block.releases += 1
            self._meter.frees += 1
            self._meter.live_bytes -= self.nbytes

    def __del__(self) -> None:
        self.release()


@runtime_checkable
class Hosting(Protocol):
    """A runtime whose kernels can write to memory of the host as fast as to that of the device."""

    def hosted(self, nbytes: int) -> Block | None:
        """Give new memory of the host as a block: a download of adjacent bytes of it copies nothing. None where a
        copy is as fast."""


@runtime_checkable
class Pinning(Protocol):
    """A runtime whose device may have memory of its own."""

    def pinned(self, nbytes: int) -> Block | None:
        """Allocate memory of the host that the device copies to by itself, as `Runtime.copy` does. None where the
        device's memory is the host's. Raises MemoryError."""


@runtime_checkable
class Reaching(Protocol):
    """A runtime whose device may have its memory where the host has: then the host writes there while it rests."""

    def resting(self) -> bool:
        """Tell whether the host may write now: nothing runs, is captured or is timed."""

    def reach(self, block: Block) -> Array:
        """Give the bytes of a block where they lie, `[nbytes]`, u8, while it rests. They stay there until the block
        is released."""


Started = Callable[..., None]
"""Starts a prepared launch: given all its blocks, then the integers that change."""


EACH = 0
"""Stands for an integer of a prepared launch that each start names."""


@runtime_checkable
class Preparing(Protocol):
    """A runtime that starts a launch sooner if most of its integers were named before."""

    def prepared(self, kernel: str, work: Work, numbers: tuple[int, ...], changing: tuple[int, ...]) -> Started:
        """Prepare a launch of a kernel, all of whose integers these are, but for those at the places `changing`,
        which each start names. A start does what `Runtime.launch` does."""


@runtime_checkable
class ReadingForms(Protocol):
    """A runtime whose attention reads rows in some forms where they lie."""

    def reads_form(self, config: Config) -> bool:
        """Tell whether it reads those of this config, which has a form."""


class Work(NamedTuple):
    """The size of a launch: `words` of a row, rows of a head, heads of a part, parts (keys and values)."""

    words: int
    rows: int
    heads: int = 1
    parts: int = 1


class Captured(Protocol):
    """Launches that run together, in the order in which they were captured."""

    def replay(self) -> None:
        """Run the launches again: the meter counts one. Raises RuntimeError if one of their blocks was released."""


class Recorded(Protocol):
    """What a replay asks of captured launches."""

    @property
    def moved(self) -> int:
        """Count the bytes that the launches said they move on the device."""

    def check(self) -> None:
        """Raise RuntimeError if a block that they work on was released."""


class Runtime(Protocol):
    """A device. Calls take effect in order; launches may be asynchronous, uploads and downloads wait."""

    meter: Meter
    dialect: Literal["cl", "cuda"]
    """The dialect of the kernels' text."""
    gpu: bool
    """Whether the device is a GPU."""
    cache_bytes: int
    """Bytes of the device's last-level cache; 0 if unknown."""
    stream_bytes: int
    """Bytes to read, write or copy when measuring the device's limits: far more than its caches hold."""

    @property
    def clock(self) -> str:
        """Say what `elapsed` measures."""

    def allocate(self, nbytes: int) -> Block:
        """Allocate memory, aligned to at least 16 bytes. Raises MemoryError, and then has changed nothing."""

    def upload(self, source: Array, to: Block) -> None:
        """Copy one or more contiguous host bytes to the start of a block; `source` may change afterwards."""

    def download(self, source: Block, at: int, width: int, height: int = 1, pitch: int = 0) -> Array:
        """Download lines of bytes as a new array `[height, width]`, not empty. Line i begins at byte
        `at + i * pitch`."""

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        """Start a kernel of `kernels.source`, in any launch shape: kernels do all the work in every shape. Integers
        are 64 bits wide."""

    def capture(self, work: Callable[[], None]) -> Captured:
        """Capture the launches of `work` without running them; the result can replay them any number of times.
        `work` does nothing but launch: until it returns, any call but `launch` and `describe` raises RuntimeError.
        Blocks and integers are fixed now; each replay reads the blocks' current content.
        """

    def fill(self, to: Block) -> None:
        """Write a whole block by the device's own means, not by a kernel: a limit to compare with."""

    def copy(self, source: Block, to: Block) -> None:
        """Copy a whole block to one of its size by the device's own means, not by a kernel."""

    def synchronise(self) -> None:
        """Wait until everything is done."""

    def elapsed(self, work: Callable[[], None]) -> float:
        """Do the work, wait for the device, and return the seconds it was busy."""

    def learn(self, text: str, names: Mapping[str, int]) -> None:
        """Compile another text, so that its kernels can be launched; `names` says how many arguments of each are
        buffers."""

    def describe(self) -> Mapping[str, Any]:
        """Describe the device: in words under "device", further facts as JSON under "details"."""


def prepared(
    runtime: Runtime, kernel: str, work: Work, numbers: tuple[int, ...], changing: tuple[int, ...]
) -> Started:
    """Prepare a launch on any runtime, as `Preparing.prepared` does."""
    if isinstance(runtime, Preparing):
        return runtime.prepared(kernel, work, numbers, changing)
    return lambda *args: runtime.launch(kernel, work, *completed(numbers, changing, args))


def completed(
    numbers: tuple[int, ...], changing: tuple[int, ...], args: tuple[Block | int, ...]
) -> tuple[Block | int, ...]:
    """Give all arguments of a prepared launch that is given these."""
    blocks, every = len(args) - len(changing), [*numbers]
    for place, number in zip(changing, args[blocks:], strict=True):
        assert isinstance(number, int)
        every[place] = number
    return *args[:blocks], *every
