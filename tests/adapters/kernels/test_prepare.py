"""`prepare` and `clear` for a CPU write the same words as those for a GPU, whatever the sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from kvgpu.memory.buffers import GUARD, LINE
from kvgpu.runtime import Work
from kvgpu.runtimes import opencl_devices
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.geometry import Config
from support.device.devices import adapter

RUNTIMES = {"opencl": cache(OpenCLRuntime), "cuda-cpu": cache(CudaCPURuntime)}
LARGE = 1 << 18
"""Words of the largest buffer that a CPU poisons."""

PLACES = [(200, 3, 70, 71, 190), (33, 0, 1, 32, 33), (4096, 64, 64, 100, 4000), (7, 2, 4, 4, 6)]


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize(("words", "keys", "keys_end", "values", "values_end"), PLACES)
def test_rows_and_what_lies_around_them(
    name: str, words: int, keys: int, keys_end: int, values: int, values_end: int
) -> None:
    runtime: Any = RUNTIMES[name]()
    where, work = (keys, keys_end, values, values_end), Work(LINE, -(-words // LINE))
    block, before = runtime.allocate(4 * words + 16), np.full(4 * words + 16, 0x5A, np.uint8)
    rows = np.zeros(words + 4, bool)
    rows[where[0] : where[1]] = rows[where[2] : where[3]] = True
    runtime.upload(before, block)
    runtime.launch("clear", work, block, words, LINE, *where)
    cleared = runtime.download(block, 0, block.nbytes)[0].view(np.uint32)
    assert (cleared[rows] == 0).all() and (cleared[~rows] == 0x5A5A5A5A).all()
    runtime.launch("prepare", work, block, words, LINE, *where, GUARD)
    made = runtime.download(block, 0, block.nbytes)[0].view(np.uint32)
    assert (made[rows] == 0xFFFFFFFF).all() and (made[:words][~rows[:words]] == GUARD).all()
    assert (made[words:] == 0x5A5A5A5A).all()


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("more", [0, 1])
def test_the_text_for_a_cpu_leaves_the_rows_of_a_large_buffer_to_who_writes_them(name: str, more: int) -> None:
    words, runtime = LARGE + more, RUNTIMES[name]()
    left = isinstance(runtime, OpenCLRuntime) and runtime._choice.taken.kind in opencl_devices.CPUS
    where = 100, words // 2, words // 2 + 200, words - 100
    block, rows = runtime.allocate(4 * words), np.zeros(words, bool)
    rows[where[0] : where[1]] = rows[where[2] : where[3]] = True
    runtime.upload(np.full(block.nbytes, 0x5A, np.uint8), block)
    runtime.launch("prepare", Work(LINE, -(-words // LINE)), block, words, LINE, *where, GUARD)
    made = runtime.download(block, 0, block.nbytes)[0].view(np.uint32)
    assert (made[rows] == (0x5A5A5A5A if left and more else 0xFFFFFFFF)).all() and (made[~rows] == GUARD).all()


def test_all_pages_of_a_large_pool_are_poisoned_where_a_user_debugs() -> None:
    caches = adapter()
    config = Config(dtype="f16", k_dim=64, v_dim=32, page_size=16, pages=512, debug=1)
    runtime, before = caches.runtime, caches.runtime.allocate(1 << 22)
    runtime.upload(np.zeros(before.nbytes, np.uint8), before)
    before.release()
    pool = caches.open("page", config)
    assert pool.held() > 4 * LARGE  # type: ignore[attr-defined]
    for page in (0, 255, 511):
        assert all((rows.view(np.uint16) == 0xFFFF).all() for rows in pool.peek(page))  # type: ignore[attr-defined]
