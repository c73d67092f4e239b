"""Strict attention made wrong in every place: each comparison, operator, number and order of its kernels in turn.

A mutant runs in a process of its own, since it may read or write anywhere, or never end. It is caught by bits that
are not those of the reference, by a fault, or by time.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import attend_cases
import attend_mutants
import numpy as np
from attend_cases import Case, block, settled
from attend_mutants import Mutant

from kvadapters.gpu.cuda_cpu import CudaCPURuntime
from kvadapters.gpu.runtime import Block, Runtime, Work
from kvref import strict
from kvspec.geometry import DTYPES, Array

EQUIVALENT = {
    "a > b || a != a": "equal numbers may be zeros of either sign, and what is subtracted from either is the same",
    "size >= 0x400u": "the least normal f16 number counts 1024 units as well",
    "return a * b": "infinity and NaN stay what they are in a sum too",
    "normal = size >= 0x800000u": "the least normal number counts 2^23 units as well",
    "(size >= 0x800000u ? 0": "the same",
    "rest < divisor": "a quotient of 1 becomes 0.111..., which is rounded up to it",
    "exponent > 1": "less 1 it is 0 on both sides",
    "UNSEEN, l = 0.0f": "the first part that is joined has all the weight, 0 times anything is added",
    "part[0] == UNSEEN": "a part without rows weighs 0 in the sums too",
    "tiles > splits": "as many tiles as splits give each split one",
    "= (split + 1) * each < tile": "tiles behind the last one have no rows that are seen",
    "part[2 + j] = 0.0f": "as of l above",
    "i < TILE; i += item": "beyond the scores; sanitizers see it",
}
"""Mutants that make the same of everything, by what stands round the fault; and why."""

CHUNK = 40
"""Mutants of one program."""

SHAPES = [((1, 2, 3), (1, 2, 3)), ((3, 1, 2), (2, 3, 1)), ((2, 3, 1), (3, 1, 2)), ((1, 1, 1), (2, 1, 1))]
"""Items of a group, and groups: none of them enough for all the work."""


class Renamed:
    """A runtime whose kernels for attention are those of one mutant."""

    def __init__(self, real: Any, number: int) -> None:
        self.real, self.number = real, number

    def launch(self, kernel: str, work: Work, *args: Block | int) -> None:
        name = f"attend_join_{self.number}" if kernel == "attend_join" else f"attend_{self.number}"
        self.real.launch(name, work, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@cache
def cases() -> list[tuple[Case, bytes]]:
    """Small ones of all sorts, each with what is right."""
    drawn = [attend_cases.drawn(seed, "f16") for seed in range(400)]
    some = [c for c in drawn if c.config.k_dim * c.config.v_dim < 150 and c.heads * c.queries < 10]
    return [(case, settled(case.expected())) for case in (*attend_cases.CORNERS, *some[:60])]


@cache
def probes() -> list[tuple[int, Array, Array, bytes]]:
    """Numbers for each function of strict.inc: which, two arrays, what is right."""
    random = np.random.default_rng(11)
    a = random.integers(0, 1 << 32, 1 << 14, np.uint64).astype(np.uint32).view(np.float32)
    a[:4096] = (np.arange(4096) * 7919).astype(np.uint32).view(np.float32)
    b = random.integers(1, 1 << 12, a.size).astype(np.float32)
    a[4096:8192] = np.arange(4096).astype(np.uint32).view(np.float32)
    a[::1000], b[::777] = np.inf, np.nan
    x = -np.abs(random.standard_normal(a.size) * 50).astype(np.float32)
    x[:1024] = np.float32(-125) + np.arange(-512, 512, dtype=np.float32) * np.float32(2**-17)
    f16 = np.arange(1 << 16, dtype=np.uint16).view(DTYPES["f16"]).astype(np.float32)
    with np.errstate(all="ignore"):
        right = a / b, strict.exp2(x.astype(np.float64)).astype(np.float32), f16, np.maximum(a, b)
    given = (a, b), (x, x), (f16, f16), (a, b)
    return [(what, *both, settled(found)) for what, (both, found) in enumerate(zip(given, right, strict=True))]


def survives(real: Any, number: int, lie: str) -> bool:
    """Whether a mutant makes of everything what is right."""
    for what, a, b, right in probes():
        blocks = [block(real, array) for array in (a, b, np.zeros_like(a))]
        real.run(f"probe_{number}", (1, 1, 1), (1, 1, 1), *blocks, what, a.size)
        if settled(real.download(blocks[2], 0, a.nbytes).view(np.float32)[0]) != right:
            return False
    runtime: Any = Renamed(real, number)
    for i, (case, right) in enumerate(cases()):
        real._shape = lambda work, i=i: SHAPES[i % len(SHAPES)]
        if settled(case.found(runtime, lie if lie == "pages" else ("ring", "bucket")[i % 2])) != right:
            return False
    return True


def caught(real: Any, number: int, lie: str) -> bool:
    """Whether the mutant is seen to be wrong."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.alarm(10)
        try:
            os._exit(0 if survives(real, number, lie) else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] != 0


def compiled(numbered: list[tuple[int, Mutant]]) -> Runtime:
    """A runtime with these mutants."""
    buffers = {"attend_join": 2, "attend": 7, "probe": 3}
    names = {f"{kernel}_{number}": n for number, _ in numbered for kernel, n in buffers.items()}
    return CudaCPURuntime(text=attend_mutants.text(numbered), names=names)


def test_every_fault_of_the_kernels_is_caught() -> None:
    numbered = list(enumerate(attend_mutants.mutants()))
    assert cases() and probes()
    chunks = [numbered[i : i + CHUNK] for i in range(0, len(numbered), CHUNK)]
    with ThreadPoolExecutor(2) as pool:
        programs = list(pool.map(compiled, chunks))
    pairs = zip(programs, chunks, strict=True)
    left = [m.what for program, chunk in pairs for number, m in chunk if not caught(program, number, m.lie)]
    assert [what for what in left if not any(known in what for known in EQUIVALENT)] == []
    assert [known for known in EQUIVALENT if not any(known in what for what in left)] == []


def test_the_kernels_as_they_are_are_right() -> None:
    whole = next(attend_mutants.mutants())
    right = whole._replace(texts=attend_mutants._sources())
    program = compiled([(0, right), (1, right._replace(lie="pages"))])
    assert not caught(program, 0, "runs") and not caught(program, 1, "pages")
