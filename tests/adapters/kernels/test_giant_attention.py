"""Attention over rows beyond 2^31 and 2^32 elements, in memory that is reserved and never touched.

The newest rows stand behind these numbers, in a run of slots or in a page, and a query sees them alone. What comes
out must be to the bit what the same rows give in a small memory, and no other page may have been read. The same
kernels with one index of 32 bits must fail.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.caches.attention import scale
from kvgpu.runtime import Block, Work
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvspec.geometry import Array
from support.device.giants import Giant, pages_of
from support.slow import one_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is reserved as Linux does it")

LIES = {"runs": "attend_runs_f16", "pages": "attend_pages_f16"}
BEYOND = {"2^31": 1 << 31, "2^32": 1 << 32}
WIDTHS = 1, 3
"""Elements of a row: the number of a row is beyond, or that of an element alone."""
NARROW = {"keys + keys_at + row * width_k": "keys + keys_at + (int)(row * width_k)"}
NARROW |= {"value[rows[i] * width_v]": "value[(int)(rows[i] * width_v)]"}
"""Texts that make an index, and the same with 32 bits."""

HEADS, ROWS, TILE = 2, 8, 32


class Lie(NamedTuple):
    """Where the rows that are seen lie: the number of the first of each head, how many rows there are in all, and
    what the kernel is told of it."""

    rows: list[int]
    total: int
    end: int
    slots: int
    table: int
    more: tuple[int, ...]


def runs(slots: int) -> Lie:
    """The last slots of each head; the position of a row is its slot."""
    return Lie(
        [(head + 1) * slots - ROWS for head in range(HEADS)], HEADS * slots, slots, slots, 0, (0, 0, slots, 0)
    )


def pages(page: int) -> Lie:
    """One page of eight rows of each head."""
    first = page * HEADS * ROWS
    return Lie([first, first + ROWS], first + HEADS * ROWS, ROWS, ROWS, page, (HEADS * ROWS, 0, 1))


def near_and_far(lie: str, rows: int) -> tuple[Lie, Lie]:
    """The rows in a small memory, and behind this many: their tiles begin at the same row."""
    whole = -(-rows // TILE) * TILE
    return (runs(TILE), runs(whole + TILE)) if lie == "runs" else (pages(0), pages(whole // ROWS))


@cache
def runtime_of(lie: str, was: str = "") -> CudaCPURuntime:
    """The kernel alone, compiled for the CPU; with a text that makes an index of 32 bits in place of `was`."""

    def read(file: str) -> str:
        text = kernels.text(file)
        assert not was or file != "attend.inc" or text.count(was) == 1
        return text.replace(was, NARROW[was]) if was else text

    name = LIES[lie]
    text = "".join(map(kernels.text, ("prelude_cuda.h", *kernels.PLAIN))) + kernels.several([name], read)
    return CudaCPURuntime(text, {name: kernels.KERNELS[name]})


def small(runtime: CudaCPURuntime, array: Array) -> Block:
    block = runtime.allocate(array.nbytes)
    runtime.upload(array, block)
    return block


def made(width: int) -> Array:
    """Rows of numbers in f16, of each head."""
    return np.random.default_rng(width).normal(size=(HEADS, ROWS, width)).astype(np.float16)


def reserved(lie: Lie, width: int) -> Giant:
    try:
        return Giant(2 * lie.total * width, 2 * width << 31)
    except OSError as e:
        pytest.skip(f"this machine reserves no such memory: {e}")


def attended(runtime: CudaCPURuntime, name: str, lie: Lie, width: int, giant: Giant) -> Array:
    """What the kernel makes of a query of each head, over rows that are keys and values at once."""
    for first, rows in zip(lie.rows, made(width), strict=True):
        giant.bytes[2 * first * width :][: rows.nbytes] = rows.reshape(-1).view(np.uint8)
    far = Block(giant, len(giant.bytes), runtime.meter)
    queries = small(runtime, np.linspace(-1, 1, HEADS * width, dtype=np.float32))
    none, table = small(runtime, np.zeros(4, np.int64)), small(runtime, np.array([lie.table], np.int32))
    parts = small(runtime, np.zeros(HEADS * (width + 2), np.float32))
    sizes = 1, HEADS, HEADS, 1, 1, width, width, int(scale(width).view(np.uint32))
    ends = 0, lie.end, 0, 0, 0, 1, ROWS, 0
    blocks = far, far, queries, none, none, table, parts
    runtime.launch(name, Work(TILE, 1, HEADS, 1), *blocks, *sizes, 0, 0, 0, lie.slots, *ends, *lie.more)
    return parts.handle.bytes.copy().view(np.float32).reshape(HEADS, width + 2)


def wrong(lie: str, beyond: int, width: int, was: str = "") -> Iterator[str]:
    """What is wrong with the output, and with what was read for it."""
    near, far = near_and_far(lie, beyond // width)
    want = attended(runtime_of(lie), LIES[lie], near, width, reserved(near, width))
    assert (want[:, 1] > 1).all(), "the query sees more than one row"
    giant = reserved(far, width)
    found = attended(runtime_of(lie, was), LIES[lie], far, width, giant)
    if found.tobytes() != want.tobytes():
        yield f"found {found.tolist()}, expected {want.tolist()}"
    expected = set[int]().union(*(pages_of(2 * first * width, 2 * ROWS * width) for first in far.rows))
    if (touched := giant.touched()) != expected:
        yield f"touched the pages {sorted(touched)}, expected {sorted(expected)}"


EACH = [(lie, beyond, width) for lie in LIES for beyond in BEYOND for width in WIDTHS]


@pytest.mark.parametrize(("lie", "beyond", "width"), one_in(8, EACH))
def test_attention_reads_the_rows_where_they_are(lie: str, beyond: str, width: int) -> None:
    assert [*wrong(lie, BEYOND[beyond], width)] == []


@pytest.mark.parametrize(
    ("lie", "beyond", "width", "was"), one_in(16, [(*each, was) for each in EACH for was in NARROW])
)
def test_an_index_of_32_bits_is_found(lie: str, beyond: str, width: int, was: str) -> None:
    assert [*wrong(lie, BEYOND[beyond], width, was)]
