"""Profiling a runtime: its clock, and the plain kernels by which its limits are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

from kvgpu import kernels
from kvgpu.runtime import Block, Pinning, Runtime, Work
from kvspec.contract.timing import Streams

WORD = 16
"""Bytes of a word of the kernels in `kernels/limits.inc`."""

WIDTHS = (256, 4096, 65536)
"""Words of a line: a GPU wants many short lines, a CPU a few long ones. Each kernel takes what suits it."""

GRIDS = (1, 4, 16, 64, 256)
"""Lines for each item: one, or a run of them. The more lines, the smaller the grid."""

TRIES = 3
"""How often each width is tried; the first launch compiles, and the fastest counts."""

DOWNLOADED = 256 << 20
"""Most bytes that come to the host at once: more is slow to allocate, and no faster."""

NEVER = 0x6B766C6D
"""A work-item writes a word if its words add up to this number: once in four billion times."""


class Timing:
    """What any adapter on a runtime offers to a profile: see `kvspec.contract.timing.Timed`."""

    runtime: Runtime

    @property
    def gpu(self) -> bool:
        """Whether the device is a GPU: then a profile takes the peers that run on one."""
        return self.runtime.gpu

    @property
    def cache_bytes(self) -> int:
        """Bytes of the device's last-level cache."""
        return self.runtime.cache_bytes

    def clock(self) -> str:
        """How the runtime measures."""
        return self.runtime.clock

    def elapsed(self, work: Callable[[], None]) -> float:
        """Seconds the device was busy with the work."""
        return self.runtime.elapsed(work)

    def clock_of(self, stream: int) -> Callable[[Callable[[], None]], float] | None:
        """Give the runtime's clock for a stream of another library, by its handle; None if it times no others."""
        elapsed_on = getattr(self.runtime, "elapsed_on", None)
        return None if elapsed_on is None else partial(elapsed_on, stream)

    def state(self) -> Mapping[str, str]:
        """Describe the device as it is now, if the runtime can."""
        state: Callable[[], Mapping[str, str]] = getattr(self.runtime, "state", dict)
        return state()

    def give_back(self) -> None:
        """Give memory that the runtime keeps for later back to the device, if it keeps any."""
        keeps: Callable[[], None] = getattr(self.runtime, "give_back", lambda: None)
        keeps()

    def synchronise(self) -> None:
        """Wait until everything is done."""
        self.runtime.synchronise()

    def streams(self, most: int) -> Streams:
        """Find the fastest way to read, to write and to copy, over two blocks of random bits of at most `most`
        bytes each. A way is a kernel of `kernels/limits.inc` in some shape, or the device's own fill or copy."""
        runtime = self.runtime
        runtime.learn(kernels.limits(runtime.dialect), kernels.LIMITS)
        words = _words(min(most, runtime.stream_bytes))
        ends = Ends(runtime, words, *(runtime.allocate(words * WORD) for _ in "ab"))
        ends.fill()
        return self._streams(ends, *self._download(ends.source))

    def _streams(self, ends: Ends, download: Callable[[], None] | None, downloaded: int) -> Streams:
        chosen = {name: ends.fastest(name) for name in ("read", "write", "copy")}
        words = ", ".join(f"{name} {way.words}" for name, way in chosen.items())
        read, write, copy = (way.work for way in chosen.values())
        said = f"the fastest of plain kernels, four loads of 16 bytes under way, and of fill and copy: {words}"

        def over(nbytes: int) -> Streams:
            part = ends._replace(words=min(ends.words, _words(nbytes)))
            return self._streams(part, download, downloaded)

        return Streams(read, write, copy, ends.words * WORD, said, download, downloaded, cache(over))

    def _download(self, source: Block) -> tuple[Callable[[], None] | None, int]:
        """Give the work that copies a block to the host, its beginning if it is large, and how many bytes."""
        runtime, nbytes = self.runtime, min(DOWNLOADED, source.nbytes)
        pinned = runtime.pinned(nbytes) if isinstance(runtime, Pinning) else None
        return (None, 0) if pinned is None else (partial(runtime.copy, source, pinned), nbytes)


def _words(nbytes: int) -> int:
    """Count the words of as many of the longest lines as so many bytes hold; at least one line."""
    return max(1, nbytes // (WORD * WIDTHS[-1])) * WIDTHS[-1]


class Way(NamedTuple):
    """A way to read, write or copy everything once."""

    words: str
    work: Callable[[], None]


class Ends(NamedTuple):
    """The first words of two blocks, and the work that streams between them."""

    runtime: Runtime
    words: int
    source: Block
    target: Block

    def fill(self) -> None:
        """Fill both with bits that look random."""
        for block in (self.source, self.target):
            self._launch("fill", WIDTHS[0], block)

    def stream(self, name: str, width: int, each: int) -> None:
        """Read the source once, or write the target, or copy the one to the other; an item takes `each` lines."""
        blocks = (self.target,) if name.startswith("write") else (self.source, self.target)
        last = () if name.startswith("copy") else (NEVER,)
        self._launch(name, width, *blocks, last=last, each=each)

    def _launch(self, name: str, width: int, *blocks: Block, last: tuple[int, ...] = (), each: int = 1) -> None:
        lines = self.words // width
        work = Work(width, max(1, lines // each))
        self.runtime.launch(f"stream_{name}", work, *blocks, lines, width, *last)

    def ways(self, name: str) -> list[Way]:
        """Give all ways: kernels by the width of a line and the size of the grid, and over whole blocks also the
        device's own way."""
        forms = {name: ""} if name == "read" or self.runtime.gpu else {name: "", f"{name}_past": " past the caches"}
        found = [
            Way(
                f"in lines of {width * WORD >> 10} KiB{past}, {each} an item",
                partial(self.stream, form, width, each),
            )
            for form, past in forms.items()
            for width in WIDTHS
            for each in GRIDS
            if each <= self.words // width
        ]
        if self.words * WORD < self.target.nbytes:
            return found
        if name == "write":
            found.append(Way("by the device's fill", partial(self.runtime.fill, self.target)))
        if name == "copy":
            found.append(Way("by the device's copy", partial(self.runtime.copy, self.source, self.target)))
        return found

    def fastest(self, name: str) -> Way:
        """The fastest way."""

        def taken(way: Way) -> float:
            return min(self.runtime.elapsed(way.work) for _ in range(TRIES))

        return min(self.ways(name), key=taken)
