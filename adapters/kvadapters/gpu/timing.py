"""Profiling a runtime: its clock, and the plain kernels by which its limits are measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kvadapters.gpu import kernels
from kvadapters.gpu.runtime import Block, Runtime, Work
from kvspec.contract.timing import Streams

WORD = 16
"""Bytes of a word of the kernels in `kernels/limits.inc`."""

WIDTHS = (256, 4096, 65536)
"""Words of a line: a GPU wants many short lines, a CPU a few long ones. Each kernel takes what suits it."""

TRIES = 3
"""How often each width is tried; the first launch compiles, and the fastest counts."""

NEVER = 0x6B766C6D
"""What the words of a work-item add up to once in four billion times; then one word is written."""


class Timing:
    """What any adapter on a runtime offers to a profile: see `kvspec.contract.timing.Timed`."""

    runtime: Runtime

    @property
    def gpu(self) -> bool:
        """Whether the device is a GPU: then a profile takes the peers that run on one."""
        return self.runtime.gpu

    def clock(self) -> str:
        """How the runtime measures."""
        return self.runtime.clock

    def elapsed(self, work: Callable[[], None]) -> float:
        """Seconds the device was busy with the work."""
        return self.runtime.elapsed(work)

    def synchronise(self) -> None:
        """Wait until everything is done."""
        self.runtime.synchronise()

    def streams(self) -> Streams:
        """The kernels of `kernels/limits.inc`, each in its fastest shape, over two blocks of random bits."""
        runtime = self.runtime
        runtime.learn(kernels.limits(runtime.dialect), kernels.LIMITS)
        lines = max(1, runtime.stream_bytes // (WORD * WIDTHS[-1]))
        ends = Ends(runtime, lines * WIDTHS[-1], *(runtime.allocate(lines * WIDTHS[-1] * WORD) for _ in "ab"))
        ends.fill()
        chosen = {name: ends.fastest(name) for name in ("read", "write", "copy")}
        words = ", ".join(f"{name} in lines of {width * WORD >> 10} KiB" for name, width in chosen.items())
        read, write, copy = (partial(ends.stream, name, width) for name, width in chosen.items())
        return Streams(read, write, copy, ends.words * WORD, f"plain kernels, 16 bytes at a time: {words}")


class Ends(NamedTuple):
    """Two blocks of this many words, and what is streamed between them."""

    runtime: Runtime
    words: int
    source: Block
    target: Block

    def fill(self) -> None:
        """Bits that look random into both."""
        for block in (self.source, self.target):
            self._launch("fill", WIDTHS[0], block)

    def stream(self, name: str, width: int) -> None:
        """Read the source once, or write the target, or copy the one to the other."""
        if name == "read":
            self._launch("read", width, self.source, self.target, last=(NEVER,))
        elif name == "write":
            self._launch("write", width, self.target, last=(NEVER,))
        else:
            self._launch("copy", width, self.source, self.target)

    def _launch(self, name: str, width: int, *blocks: Block, last: tuple[int, ...] = ()) -> None:
        lines = self.words // width
        self.runtime.launch(f"stream_{name}", Work(width, lines), *blocks, lines, width, *last)

    def fastest(self, name: str) -> int:
        """The width that this is fastest with."""

        def taken(width: int) -> float:
            return min(self.runtime.elapsed(partial(self.stream, name, width)) for _ in range(TRIES))

        return min(WIDTHS, key=taken)
