"""On a CPU, large copies write past its caches: by other kernels, which write the same bytes to the same places."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.runtime import Block, Work
from kvgpu.runtimes import launch_shapes
from kvgpu.runtimes.opencl import PAST_FROM, OpenCLRuntime
from kvgpu.timing import Ends
from kvspec.geometry import Array

HEADS, ROWS, WIDE, NARROW, SLOTS = 3, 21, 8, 5, 32
"""Heads, rows, words of a key and of a value, slots of a head."""
WORDS = 4 * HEADS * SLOTS * WIDE
BEHIND = HEADS * SLOTS * WIDE
"""Where the values begin."""

ARGS: dict[str, tuple[int, ...]] = {
    "copy16": (2, HEADS, ROWS, WIDE, NARROW, 0, BEHIND, 0, BEHIND, SLOTS, 17),
    "move16": (2, HEADS, ROWS, WIDE, NARROW, 0, BEHIND, SLOTS, 5, ROWS, 2, BEHIND + 3, SLOTS),
    "place16": (0, 1, HEADS, ROWS, WIDE, NARROW, 0, BEHIND, 0, BEHIND, SLOTS, 0),
    "scatter16": (1, HEADS, ROWS, WIDE, NARROW, 0, BEHIND, 0, 0, BEHIND, 0, SLOTS, 0, 4, 0),
    "page16": (0, HEADS, ROWS, 3, WIDE, NARROW, 0, BEHIND, 0, BEHIND, 4),
    "layer16": (1, 1, HEADS, 4, ROWS, WIDE, NARROW, 0, BEHIND, SLOTS, 3, 0, BEHIND, SLOTS, 3),
}
"""The integers of a launch of each kernel, in the order of its text."""
BETWEEN = {"place16": np.int64([4] * 8), "scatter16": np.int64([4] * 8), "page16": np.int32([5, 2, 0, 3, 1, 4, 6])}
BETWEEN["layer16"] = np.int32([0, 0, 0, 0])
"""The lengths, the table or the views that lie before these."""

runtime = cache(OpenCLRuntime)


def block(content: Array) -> Block:
    made: Block = runtime().allocate(content.nbytes)
    runtime().upload(content.view(np.uint8), made)
    return made


def written(kernel: str, plain: str, source: Array) -> Array:
    """The bytes of the target after a launch."""
    target = block(np.full(16 * WORDS, 0x5A, np.uint8))
    between = [block(BETWEEN[plain])] if plain in BETWEEN else []
    shape = launch_shapes.cpu(Work(WIDE, ROWS, HEADS, 2), 2)
    runtime().run(kernel, *shape, block(source), block(source), target, target, *between, *ARGS[plain])
    return runtime().download(target, 0, 16 * WORDS)[0]


@pytest.mark.parametrize("past", kernels.PAST)
def test_they_write_the_same_bytes(past: str) -> None:
    source = np.random.default_rng(5).integers(0, 256, 16 * WORDS, np.uint8)
    expected = written(kernels.PAST[past], kernels.PAST[past], source)
    assert (expected != 0x5A).sum() > 16 * HEADS * ROWS * NARROW
    assert np.array_equal(written(past, kernels.PAST[past], source), expected)


def test_large_launches_on_a_cpu_are_done_by_them() -> None:
    large, small = Work(16, PAST_FROM // 16 // 16 // 4, 2, 2), Work(16, PAST_FROM // 16 // 16 // 4 - 1, 2, 2)
    done = {(k, w): chosen(k, w) for k in ("move16", "move4", "attend_runs_f32") for w in (large, small)}
    assert done.pop(("move16", large)) == "move16_past"
    assert all(kernel == asked for (asked, _), kernel in done.items())


def chosen(kernel: str, work: Work) -> str:
    """The kernel that does a launch, in the shape of the one that was asked for."""
    made: Any = runtime()
    ready = made._prepared(kernel, work)
    items, groups = made._shape(kernel, work)
    assert ready.shape == (items, groups)
    kernel_, *_ = ready.compiled
    name: str = kernel_.function_name
    return name


def test_only_a_program_for_a_cpu_has_them() -> None:
    text = kernels.source("cl", "cpu")
    assert all(f"define {kernel.removesuffix('16_past').upper()} {kernel}\n" in text for kernel in kernels.PAST)
    for device in ("any", "gpu"):
        assert "_past" not in kernels.source("cl", device)


@pytest.mark.parametrize("words", [PAST_FROM // 4, PAST_FROM // 4 + 3])
def test_a_large_cache_is_cleared_whole(words: int) -> None:
    made: Any = runtime()
    target = made.allocate(4 * words + 64)
    made.upload(np.full(4 * words + 64, 0x5A, np.uint8), target)
    made.launch("clear", Work(1, words), target, words + 16, 1, 1, 9, 9, words + 1)
    found = made.download(target, 0, 4 * words + 64)[0].view(np.uint32)
    assert found[0] == 0x5A5A5A5A and not found[1 : words + 1].any() and (found[words + 1 :] == 0x5A5A5A5A).all()


def test_the_limits_of_a_cpu_are_those_past_its_caches() -> None:
    """Else a share of the limit flatters: a plain store reads each line before it writes it."""
    names = [way.words for way in _ends().ways("write")]
    assert sum("past the caches" in name for name in names) * 2 == len(names) - 1  # one is by the device's fill
    assert not any("past" in way.words for way in _ends().ways("read"))


def _ends() -> Ends:
    blocks = (runtime().allocate(1 << 20) for _ in "ab")
    return Ends(runtime(), (1 << 20) // 16, *blocks)
