"""All 2**32 f32 values cast by the kernels, and compared with numpy's casts and those of ml_dtypes.

`python tests/tools/all_casts.py [opencl] [cuda-cpu] [--first N] [--values N]`: the kernels of each runtime named,
or of both, from a first bit pattern on. `nox -s casts` runs all of it. Exit status 1 if any value is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kvgpu.runtime import Runtime, Work
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.geometry import Array
from kvspec.rows.fills import cast, settled

ALL = 1 << 32
CHUNK = 1 << 23
"""Values cast in one launch: 32 MiB of f32."""
LINE = 1 << 12
"""Values of a row, which on a CPU is the share of an item."""
SHOWN = 5.0
"""Seconds between lines of progress."""


class Casts:
    """One runtime, and the memory that its kernels read and write."""

    def __init__(self, name: str, runtime: Any) -> None:
        self.name = name
        self.runtime: Runtime = runtime
        self.source, self.target = runtime.allocate(4 * CHUNK), runtime.allocate(2 * CHUNK)

    def give(self, values: Array) -> None:
        self.runtime.upload(values, self.source)

    def cast(self, dtype: str, together: int) -> Array:
        """What the kernel for so many values at a time makes of what was given: keys alone, one head."""
        width, rows = LINE // together, CHUNK // LINE
        blocks = self.source, self.source, self.target, self.target
        arguments = (*blocks, 1, 1, rows, width, 0, 0, 0, 0, 0, rows, 0)
        self._launch(f"cast{together}_{dtype}", Work(width, rows), arguments)
        return self.runtime.download(self.target, 0, 2 * CHUNK)[0].view(np.uint16)

    def _launch(self, kernel: str, work: Work, arguments: tuple[Any, ...]) -> None:
        if isinstance(self.runtime, CudaCPURuntime):
            # a thread for each word is a fiber for each here: one thread strides over all of it instead
            self.runtime.run(kernel, (1, 1, 1), (1, 1, 1), *arguments)
        else:
            self.runtime.launch(kernel, work, *arguments)


RUNTIMES: dict[str, Callable[[], Any]] = {"opencl": OpenCLRuntime, "cuda-cpu": CudaCPURuntime}


def wrong(casts: list[Casts], first: int) -> Iterator[str]:
    """Values from this bit pattern on that some kernel casts otherwise."""
    values = np.arange(first, first + CHUNK, dtype=np.int64).astype(np.uint32).view(np.float32)
    for one in casts:
        one.give(values)
    for dtype in ("f16", "bf16"):
        expected = cast(values, dtype)
        for one in casts:
            for together in (4, 1):
                found = settled(one.cast(dtype, together).view(expected.dtype))
                unlike = np.flatnonzero(found.view(np.uint16) != expected.view(np.uint16))
                for i in unlike[:3]:
                    bits, *made = (a.view(f"u{a.itemsize}")[i] for a in (values, found, expected))
                    yield f"{one.name}, cast{together}_{dtype}: {bits:08x} became {made[0]:04x}, not {made[1]:04x}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runtimes", nargs="*", choices=[*RUNTIMES, []], help="those whose kernels are tried")
    parser.add_argument("--first", type=lambda n: int(n, 0), default=0, help="bit pattern to begin with")
    parser.add_argument("--values", type=lambda n: int(n, 0), default=ALL, help="how many, in whole chunks")
    asked = parser.parse_args(arguments)
    casts = [Casts(name, RUNTIMES[name]()) for name in asked.runtimes or RUNTIMES]
    chunks = range(asked.first, min(ALL, asked.first + asked.values), CHUNK)
    started, told, found = time.monotonic(), 0.0, 0
    for i, first in enumerate(chunks):
        for line in wrong(casts, first):
            print(line)
            found += 1
        if time.monotonic() - told > SHOWN or i + 1 == len(chunks):
            told = time.monotonic()
            left = (told - started) / (i + 1) * (len(chunks) - i - 1)
            print(f"[{i + 1:3d}/{len(chunks)}] up to {first + CHUNK - 1:08x}, {left:.0f} s left", flush=True)
    names = " and ".join(c.name for c in casts)
    what = f"{len(chunks) * CHUNK:,} values, {names}, f16 and bf16, four at a time and one by one"
    print(
        f"{what}: {f'{found} or more are wrong' if found else 'none is wrong'}, {time.monotonic() - started:.0f} s"
    )
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
