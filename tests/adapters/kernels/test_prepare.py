"""`prepare` and `clear` for a CPU write the same words as those for a GPU, whatever the sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from kvadapters.gpu.memory.buffers import GUARD, LINE
from kvadapters.gpu.runtime import Work
from kvadapters.gpu.runtimes.cuda_cpu import CudaCPURuntime
from kvadapters.gpu.runtimes.opencl import OpenCLRuntime

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
