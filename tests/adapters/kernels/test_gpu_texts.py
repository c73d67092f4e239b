"""The texts for GPUs do what the common texts do: on random arguments every byte of every buffer is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.runtime import Work
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.launch_shapes import AT_ONCE, GROUP, gpu, on_a_gpu
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.geometry import Array
from support.slow import one_in

SHAPES = (
    ((1, 1, 1), (1, 1, 1)),
    ((32, 4, 1), (3, 2, 2)),
    ((3, 2, 1), (2, 3, 1)),
    ((1, 8, 1), (2, 1, 2)),
    ((16, 1, 1), (7, 5, 3)),
)
"""Launch shapes: items of a group, and groups. Some are too few for the work, some too many."""

Random = np.random.Generator
Arguments = tuple[list[Array], list[int]]
"""The buffers of a launch, and its integers."""


@cache
def runtime(device: kernels.Device) -> CudaCPURuntime:
    return CudaCPURuntime(device=device)


def below(random: Random, most: int) -> int:
    return int(random.integers(1, most + 1))


def pools(random: Random, *sizes: int) -> list[Array]:
    """Buffers of random bytes, of these sizes rounded up to 16."""
    return [random.integers(0, 256, -(-size // 16) * 16, np.uint8) for size in sizes]


def moved(random: Random, word: int) -> Arguments:
    heads, k, v, slots, to = (below(random, most) for most in (3, 40, 5, 30, 20))
    wrap, at = below(random, slots), below(random, 4)
    rows, turn = below(random, min(wrap, to)), int(random.integers(0, wrap))
    sizes = [(at + heads * n * width) * word for n, width in ((slots, k), (slots, v), (to, k), (to, v))]
    return pools(random, *sizes), [2, heads, rows, k, v, at, at, slots, turn, wrap, at, at, to]


def placed(random: Random, word: int) -> Arguments:
    groups, heads, k, v, slots = (below(random, most) for most in (3, 3, 40, 5, 20))
    advance, first = int(random.integers(0, 2)), below(random, 3)
    rows = 1 if advance else below(random, slots)
    sizes = [(3 + groups * heads * n * width) * word for n, width in ((rows, k), (rows, v), (slots, k), (slots, v))]
    lengths = random.integers(0, slots - rows + 1, first + groups).astype(np.int64).view(np.uint8)
    return [*pools(random, *sizes), lengths], [first, groups, heads, rows, k, v, 3, 3, 3, 3, slots, advance]


def scattered(random: Random, word: int) -> Arguments:
    layers, heads, k, v, slots = (below(random, most) for most in (3, 3, 40, 5, 20))
    rows, first, more = below(random, slots), int(random.integers(0, 3)), below(random, 3)
    sizes = [(3 + layers * heads * slots * width) * word for width in (k, v, k, v)]
    count = first + layers + more
    lengths = random.integers(0, slots + 1, 2 + count).astype(np.int64).view(np.uint8)
    whole = heads * slots
    numbers = [layers, heads, rows, k, v, 3, 3, whole, 3, 3, whole, slots, 2, count, first]
    return [*pools(random, *sizes), lengths], numbers


def paged(random: Random, word: int) -> Arguments:
    heads, k, v, size, entries = (below(random, most) for most in (3, 40, 5, 9, 6))
    pages, first = entries + 2, int(random.integers(0, size * entries))
    rows = below(random, size * entries - first)
    sizes = [
        (3 + heads * n * width) * word for n, width in ((rows, k), (rows, v), (pages * size, k), (pages * size, v))
    ]
    table = random.permutation(pages)[:entries].astype(np.int32).view(np.uint8)
    gather = int(random.integers(0, 2))
    return [*pools(random, *sizes), table], [gather, heads, rows, first, k, v, 3, 3, 3, 3, size]


def copied(random: Random, name: str) -> Arguments:
    read, written, _ = kernels.COPIES[name]
    heads, k, v, slots = (below(random, most) for most in (3, 20, 5, 30))
    rows, turn = below(random, slots), int(random.integers(0, slots))
    bytes_of = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "u128": 16}
    sizes = [3 * n + rows * heads * width * n for n in [bytes_of[read]] for width in (k, v)]
    sizes += [3 * n + slots * heads * width * n for n in [bytes_of[written]] for width in (k, v)]
    return pools(random, *sizes), [2, heads, rows, k, v, 3, 3, 3, 3, slots, turn]


def filled(random: Random, more: list[int]) -> Arguments:
    words = below(random, 300)
    ends = sorted(int(e) for e in random.integers(0, words + 1, 4))
    return pools(random, 4 * words + 16), [words, 64, *ends, *more]


def poisoned(random: Random) -> Arguments:
    keys, n, gap, m = (int(random.integers(0, 90)) for _ in range(4))
    return pools(random, keys + n + gap + m + 20), [64, keys, n, keys + n + gap, m]


def arguments(kernel: str, random: Random) -> Arguments:
    """Of a launch of a kernel."""
    if kernel in kernels.COPIES:
        return copied(random, kernel)
    if kernel in ("prepare", "clear"):
        return filled(random, [0xAB] * (kernel == "prepare"))
    if kernel == "poison":
        return poisoned(random)
    kind = kernel.rstrip("0123456789")
    made: dict[str, Callable[[Random, int], Arguments]] = {
        "move": moved, "place": placed, "scatter": scattered, "page": paged
    }  # fmt: skip
    return made[kind](random, int(kernel.removeprefix(kind)))


KERNELS = [
    *(f"{kind}{n}" for kind in ("move", "place", "scatter", "page") for n in kernels.WORDS),
    *kernels.COPIES,
    *("prepare", "clear", "poison"),
]


def results(made: Any, kernel: str, shape: Any, given: Arguments) -> Iterator[bytes]:
    """What a launch leaves in each buffer."""
    blocks = [made.allocate(buffer.nbytes) for buffer in given[0]]
    for buffer, block in zip(given[0], blocks, strict=True):
        made.upload(buffer, block)
    made.run(kernel, *shape, *blocks, *given[1])
    for block in blocks:
        yield made.download(block, 0, block.nbytes).tobytes()


def differ(made: Any, kernel: str, turns: int = 40) -> bool:
    """Whether a runtime does something else than the common texts, launched in any shape or its own."""
    for turn in range(turns):
        random = np.random.default_rng(turn)
        given = arguments(kernel, random)
        shape = (*SHAPES, on_a_gpu(kernel, Work(3, turn + 1, 2, 2)))[turn % (len(SHAPES) + 1)]
        wanted = list(results(runtime("any"), kernel, ((1, 1, 1), (1, 1, 1)), given))
        if list(results(made, kernel, shape, given)) != wanted:
            return True
    return False


@pytest.mark.parametrize("kernel", KERNELS)
def test_they_do_what_the_common_texts_do(kernel: str) -> None:
    assert not differ(runtime("gpu"), kernel)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_they_do_so_in_opencl(kernel: str) -> None:
    """A CPU's OpenCL compiles a kernel again for each size of a group."""
    assert not differ(_opencl(), kernel, 12)


@cache
def _opencl() -> OpenCLRuntime:
    return OpenCLRuntime(text=kernels.source("cl", "gpu"), shape=gpu)


PLANTED = {
    "a word too few": ("move4", "if (i < (count)) kept", "if (i + 1 < (count)) kept"),
    "a word too many": ("move2", "if (i < (count)) TO_I", "if (i <= (count)) TO_I"),
    "the seam a word late": ("move16", "i + skip < around ?", "i + skip <= around ?"),
    "rows of the part before": ("move4", "turn * width, around", "turn * width_k, around"),
    "every group all words": ("place4", "blocks)*AT_ONCE * (lanes)) {", "blocks)*AT_ONCE * (lanes) * 2) {"),
    "a length that stays": ("place4", "lengths[first + g] = at + 1", "lengths[first + g] = at"),
    "lengths of the first items alone": ("scatter4", "l = lane; l < all;", "l = lane; l < 1;"),
    "the page before": ("page4", "low - entry * size) * width", "low - entry * size + 1) * width"),
    "a page cut short": ("page2", "(entry + 1) * size < first + rows ?", "(entry + 1) * size <= first ?"),
    "a row too few at once": ("copy4", "k < AT_ONCE; ++k) if (t", "k < AT_ONCE - 1; ++k) if (t"),
    "slots that do not wrap": ("cast1_f16", ": turn + row - slots", ": 0"),
    "a guard four words long": ("prepare", "= 4 * q + k;\n      word", "= 4 * q + (k > 1);\n      word"),
    "the last words": ("prepare", "4 * q + k < words; ++k", "4 * q + k + 1 < words; ++k"),
    "zeros around rows": ("clear", "if (rows == 15)", "if (rows)"),
    "poison before the range": ("poison", "16 * q >= first &&", "1 &&"),
}  # fmt: skip
"""What was planted: a kernel, a piece of the texts, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(4, PLANTED))
def test_a_planted_bug_is_seen(bug: str) -> None:
    kernel, right, wrong = PLANTED[bug]
    text = kernels.source("cuda", "gpu")
    assert right in text
    broken = CudaCPURuntime(text.replace(right, wrong), {kernel: kernels.KERNELS[kernel]})
    assert differ(broken, kernel)


def test_items_take_several_words_or_rows_at_a_time() -> None:
    """A row of 16 words, 4,096 of them in 8 heads: a quarter of the groups that it takes word by word."""
    work = Work(16, 4096, 8, 2)
    assert on_a_gpu("move16", work) == ((32, 4, 1), (4096 * 16 // AT_ONCE // GROUP, 8, 2))
    assert on_a_gpu("cast4_f16", work) == ((16, 8, 1), (4096 // 8 // AT_ONCE, 8, 2))
    token_major = on_a_gpu("cast4_f16", Work(256, 512, 1, 2))
    assert token_major == ((128, 1, 1), (512 // AT_ONCE, 1, 2)), "a group for each row, and not for four"
    assert on_a_gpu("page16", work) == ((32, 4, 1), (4096 // 16 // 4, 8, 2))
    assert on_a_gpu("place16", work._replace(rows=1)) == gpu(work._replace(rows=1))
    assert on_a_gpu("attend_runs_f16", work) == gpu(work)
