"""Index arithmetic of the kernels beyond 2^31 and 2^32 words, over memory that is reserved and never touched.

Each case writes rows to reserved memory, or reads them from it, where their index is beyond these numbers: of the
row itself, where rows are one word wide, and of the word. The rows must stand in their place, and no other page may
have been touched. The same kernels with one index of 32 bits must fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.runtime import Block, Work
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvspec.geometry import Array
from support.device.giants import Giant, pages_of
from support.slow import one_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is reserved as Linux does it")

BEYOND = {"2^31": 1 << 31, "2^32": 1 << 32}
WIDTHS = 1, 3
"""Words of a row: the number of a row is beyond, or that of a word alone."""

HEADS, ROWS = 2, 8


class Shape:
    """Memory for two heads of `slots` rows: those of the second head are beyond."""

    def __init__(self, beyond: int, width: int, word: int) -> None:
        self.width, self.word, self.slots = width, word, (beyond // width // ROWS + 2) * ROWS

    def giant(self) -> Giant:
        """Reserve it, with room in front for the lowest number of 32 bits."""
        try:
            return Giant(HEADS * self.slots * self.width * self.word, (1 << 31) * self.width * self.word)
        except OSError as e:
            pytest.skip(f"this machine reserves no such memory: {e}")

    def at(self, head: int, slot: int) -> int:
        """The first byte of a row."""
        return (head * self.slots + slot) * self.width * self.word

    def rows(self) -> Array:
        """Eight rows of each head, of words that differ, `[heads, rows, bytes of a row]`."""
        words = np.arange(1, 1 + HEADS * ROWS * self.width, dtype=f"u{self.word}")
        return words.view(np.uint8).reshape(HEADS, ROWS, -1)


@dataclass(frozen=True)
class Case:
    """A kernel that writes to reserved memory, or reads from it."""

    kernel: str
    slots: Callable[[int], Sequence[int]]
    """The slots of the rows of each head, of so many."""
    arguments: Callable[[CudaCPURuntime, Shape, Block, Block], Sequence[Block | int]]
    """What the kernel is given, for a small block of rows and a giant one; keys and values are the same."""
    was: str
    """A text of the kernel that makes an index."""
    now: str
    """The same with 32 bits."""
    reads: bool = False


def small(runtime: CudaCPURuntime, array: Array) -> Block:
    block = runtime.allocate(array.nbytes)
    runtime.upload(array, block)
    return block


def lengths(runtime: CudaCPURuntime, *numbers: int) -> Block:
    return small(runtime, np.array(numbers, np.int64))


def turned(slots: int) -> list[int]:
    """The last slots, and then the first."""
    return [(slots - ROWS // 2 + i) % slots for i in range(ROWS)]


def last(slots: int) -> list[int]:
    return list(range(slots - ROWS, slots))


CASES = {
    "move into": Case(
        "move1",
        lambda slots: range(ROWS),
        lambda _, s, rows, far: (
            rows,
            rows,
            far,
            far,
            1,
            HEADS,
            ROWS,
            *[s.width] * 2,
            0,
            0,
            ROWS,
            0,
            ROWS,
            0,
            0,
            s.slots,
        ),
        "to + (head * to_slots + t) * width",
        "to + (int)((head * to_slots + t) * width)",
    ),
    "move out of": Case(
        "move1",
        turned,
        lambda _, s, rows, far: (
            *(far, far, rows, rows, 1, HEADS, ROWS, *[s.width] * 2),
            *(0, 0, s.slots, s.slots - ROWS // 2, s.slots, 0, 0, ROWS),
        ),
        "from + (head * from_slots + slot) * width",
        "from + (int)((head * from_slots + slot) * width)",
        reads=True,
    ),
    "copy": Case(
        "copy2",
        turned,
        lambda runtime, s, rows, far: (
            *(by_token(runtime, s), rows, far, far, 1, HEADS, ROWS, *[s.width] * 2),
            *(0, 0, 0, 0, s.slots, s.slots - ROWS // 2),
        ),
        "to + (head * slots + slot) * width",
        "to + (int)((head * slots + slot) * width)",
    ),
    "place": Case(
        "place1",
        last,
        lambda runtime, s, rows, far: (
            *(rows, rows, far, far, lengths(runtime, *[s.slots - ROWS] * HEADS), 0, HEADS, 1, ROWS),
            *(*[s.width] * 2, 0, 0, 0, 0, s.slots, 0),
        ),
        "(head * slots + at) * width",
        "(int)((head * slots + at) * width)",
    ),
    "step": Case(
        "step1",
        lambda slots: [slots - 1],
        lambda runtime, s, rows, far: (
            *(
                first(runtime, s),
                first(runtime, s),
                far,
                far,
                lengths(runtime, *[s.slots - 1] * HEADS),
                1,
                HEADS,
                HEADS,
            ),
            *(1, *[s.width] * 2, 0, 0, 0, 0, s.slots),
        ),
        "to_row * width",
        "(int)(to_row * width)",
    ),
    "scatter": Case(
        "scatter1",
        lambda slots: range(ROWS),
        lambda runtime, s, rows, far: (
            *(rows, rows, far, far, lengths(runtime, 0, 0), HEADS, 1, ROWS, *[s.width] * 2),
            *(0, 0, ROWS, 0, 0, s.slots, s.slots, 0, HEADS, 0),
        ),
        "(i * to_layer + head) * width",
        "(int)((i * to_layer + head) * width)",
    ),
    "page into": Case(
        "page1",
        last,
        lambda runtime, s, rows, far: (
            *(rows, rows, far, far, table(runtime, s), 0, 1, HEADS * ROWS, 0, *[s.width] * 2, 0, 0, 0, 0, ROWS),
        ),
        "(((i64)table[entry] * heads + head) * size + slot) * width",
        "(int)((((i64)table[entry] * heads + head) * size + slot) * width)",
    ),
    "page out of": Case(
        "page1",
        last,
        lambda runtime, s, rows, far: (
            *(rows, rows, far, far, table(runtime, s), 1, 1, HEADS * ROWS, 0, *[s.width] * 2, 0, 0, 0, 0, ROWS),
        ),
        "(((i64)table[entry] * heads + head) * size + slot) * width",
        "(int)((((i64)table[entry] * heads + head) * size + slot) * width)",
        reads=True,
    ),
}


def table(runtime: CudaCPURuntime, shape: Shape) -> Block:
    """The last page of each head, where pages are of eight rows."""
    return small(runtime, np.array([(head + 1) * shape.slots // ROWS - 1 for head in range(HEADS)], np.int32))


def by_token(runtime: CudaCPURuntime, shape: Shape) -> Block:
    """The rows of all heads side by side."""
    return small(runtime, np.ascontiguousarray(shape.rows().swapaxes(0, 1)))


def first(runtime: CudaCPURuntime, shape: Shape) -> Block:
    """The first row of each head."""
    return small(runtime, np.ascontiguousarray(shape.rows()[:, :1]))


@cache
def runtime_of(name: str, narrow: bool) -> CudaCPURuntime:
    """The kernel alone, compiled for the CPU."""
    case = CASES[name]

    def read(file: str) -> str:
        text = kernels.text(file)
        assert text.count(case.was) == 1
        return text.replace(case.was, case.now) if narrow else text

    text = kernels.text("prelude_cuda.h") + kernels.several([case.kernel], read)
    return CudaCPURuntime(text, {case.kernel: kernels.KERNELS[case.kernel]})


def wrong(name: str, beyond: int, width: int, narrow: bool = False) -> Iterator[str]:
    """What is wrong after a launch of a case."""
    case, runtime = CASES[name], runtime_of(name, narrow)
    shape = Shape(beyond, width, int(case.kernel[-1]))
    giant, rows = shape.giant(), shape.rows()
    slots = [*case.slots(shape.slots)]
    at = {(head, i): shape.at(head, slot) for head in range(HEADS) for i, slot in enumerate(slots)}
    size = rows.shape[2]
    for (head, i), begin in at.items() if case.reads else ():
        giant.bytes[begin : begin + size] = rows[head, i]
    near = small(runtime, np.zeros_like(rows) if case.reads else rows)
    far = Block(giant, len(giant.bytes), runtime.meter)
    runtime.launch(case.kernel, Work(shape.width, ROWS, HEADS, 1), *case.arguments(runtime, shape, near, far))
    touched = giant.touched()
    if touched != (expected := set[int]().union(*(pages_of(begin, size) for begin in at.values()))):
        yield f"touched the pages {sorted(touched)}, expected {sorted(expected)}"
    read = near.handle.bytes.reshape(rows.shape)
    for (head, i), begin in at.items():
        found = read[head, i] if case.reads else giant.bytes[begin : begin + size]
        if found.tolist() != rows[head, i].tolist():
            yield f"row {i} of head {head}: {found.tolist()}, expected {rows[head, i].tolist()}"


EACH = [(name, beyond, width) for name in CASES for beyond in BEYOND for width in WIDTHS]


@pytest.mark.parametrize(("name", "beyond", "width"), one_in(7, EACH))
def test_rows_are_in_their_place_and_nothing_else_is_touched(name: str, beyond: str, width: int) -> None:
    assert [*wrong(name, BEYOND[beyond], width)] == []


@pytest.mark.parametrize(("name", "beyond", "width"), one_in(14, EACH))
def test_an_index_of_32_bits_is_found(name: str, beyond: str, width: int) -> None:
    assert [*wrong(name, BEYOND[beyond], width, narrow=True)]
