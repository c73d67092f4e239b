"""`prepare`, `clear` and `guards` write the same words on every runtime, whatever the sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from kvgpu.memory.buffers import GUARD, LARGE, LINE, Rows
from kvgpu.memory.layout import Geometry
from kvgpu.runtime import Block, Work
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.geometry import Config
from support.device.devices import adapter

RUNTIMES = {"opencl": cache(OpenCLRuntime), "cuda-cpu": cache(CudaCPURuntime)}
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
    runtime.upload(before, block)
    runtime.launch("guards", work, block, words, *where, GUARD)
    made = runtime.download(block, 0, block.nbytes)[0].view(np.uint32)
    assert (made[:words][~rows[:words]] == GUARD).all() and (made[rows] == 0x5A5A5A5A).all()
    assert (made[words:] == 0x5A5A5A5A).all()


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("slots", [4000, 5000])
def test_the_rows_of_a_large_buffer_are_left_to_who_writes_them(name: str, slots: int) -> None:
    runtime: Any = Before(RUNTIMES[name]())
    rows = Rows(runtime, Geometry(2, 80, 48), slots)
    rows.check_guards()
    made = runtime.download(rows.block, 0, rows.block.nbytes)[0]
    keys, keys_end, values, values_end = rows.ends
    of_rows = {int(b) for part in (made[keys:keys_end], made[values:values_end]) for b in np.unique(part)}
    assert of_rows == ({0x5A} if rows.block.nbytes > LARGE else {0xFF})


class Before:
    """A runtime whose new memory holds what was there before."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime

    def allocate(self, nbytes: int) -> Block:
        block: Block = self._runtime.allocate(nbytes)
        self._runtime.upload(np.full(nbytes, 0x5A, np.uint8), block)
        return block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def test_all_pages_of_a_large_pool_are_poisoned_where_a_user_debugs() -> None:
    caches = adapter()
    config = Config(dtype="f16", k_dim=64, v_dim=32, page_size=16, pages=512, debug=1)
    runtime, before = caches.runtime, caches.runtime.allocate(1 << 22)
    runtime.upload(np.zeros(before.nbytes, np.uint8), before)
    before.release()
    pool = caches.open("page", config)
    assert pool.held() > LARGE  # type: ignore[attr-defined]
    for page in (0, 255, 511):
        assert all((rows.view(np.uint16) == 0xFFFF).all() for rows in pool.peek(page))  # type: ignore[attr-defined]
