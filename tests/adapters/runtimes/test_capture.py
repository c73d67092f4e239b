"""Captured work: nothing happens until it is replayed, and then all of it, in order."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kvgpu.memory.layout import Geometry, Place, move, put, writer
from kvgpu.runtime import Block, Captured, Runtime, Work
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from support.device.devices import adapter
from support.fakes import fake_cupy

ROWS = Geometry(1, 16, 0)
SIZE = 32
"""Bytes of every block here: two rows."""


RUNTIMES: dict[str, Callable[[], Runtime]] = {
    "opencl": lambda: adapter().runtime,
    "cuda-cpu": cache(CudaCPURuntime),
    "cupy": fake_cupy.runtime,
}


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> Any:
    return RUNTIMES[request.param]()


def block(runtime: Runtime, value: int) -> Block:
    made = runtime.allocate(SIZE)
    runtime.upload(np.full(SIZE, value, np.uint8), made)
    return made


def seen(runtime: Runtime, found: Block) -> set[int]:
    return set(runtime.download(found, 0, SIZE)[0].tolist())


def copy(runtime: Runtime, source: Block, target: Block) -> None:
    ends = (Place(b, b, 0, 0, 2).span() for b in (source, target))
    move(runtime, ROWS, 2, *ends)


def fill(runtime: Runtime, target: Block, value: int) -> None:
    words = SIZE // 4
    runtime.launch("prepare", Work(1, words), target, words, 1, 0, 0, 0, 0, value * 0x01010101)


def chain(runtime: Runtime, *blocks: Block) -> Captured:
    """Captured copies from each block to the next."""

    def work() -> None:
        for source, target in pairwise(blocks):
            copy(runtime, source, target)

    return runtime.capture(work)


def test_nothing_is_done_or_counted_while_capturing(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    before = runtime.meter.reading()
    chain(runtime, a, b)
    assert runtime.meter.since(before) == {}
    assert seen(runtime, b) == {2}


def test_a_replay_does_it_all_in_order_as_often_as_asked(runtime: Any) -> None:
    a, b, c = (block(runtime, n) for n in (1, 2, 3))
    captured = chain(runtime, a, b, c)
    for value in (4, 5):
        runtime.upload(np.full(SIZE, value, np.uint8), a)
        captured.replay()
        assert seen(runtime, b) == seen(runtime, c) == {value}


def test_what_overwrites_comes_last(runtime: Any) -> None:
    target = block(runtime, 1)

    def work() -> None:
        fill(runtime, target, 2)
        fill(runtime, target, 3)

    captured = runtime.capture(work)
    fill(runtime, target, 4)
    captured.replay()
    assert seen(runtime, target) == {3}


def test_a_replay_is_one_launch_and_moves_what_was_captured(runtime: Any) -> None:
    captured = chain(runtime, block(runtime, 1), block(runtime, 2), block(runtime, 3))
    before = runtime.meter.reading()
    captured.replay()
    captured.replay()
    assert runtime.meter.since(before) == {"launches": 2, "device_to_device": 2 * 2 * SIZE}


def test_nothing_captured_is_nothing_replayed(runtime: Any) -> None:
    captured = runtime.capture(lambda: None)
    before = runtime.meter.reading()
    captured.replay()
    assert runtime.meter.since(before) == {"launches": 1}


@pytest.mark.parametrize("which", [0, 2])
def test_a_block_released_since_is_not_worked_on(runtime: Any, which: int) -> None:
    blocks = block(runtime, 1), block(runtime, 2), block(runtime, 3)
    captured = chain(runtime, *blocks)
    blocks[which].release()
    before = runtime.meter.reading()
    with pytest.raises(RuntimeError, match="was released since"):
        captured.replay()
    assert runtime.meter.since(before) == {}
    assert seen(runtime, blocks[1]) == {2}


def test_a_block_that_is_captured_is_not_forgotten(runtime: Any) -> None:
    target = block(runtime, 2)
    captured = chain(runtime, block(runtime, 1), target)
    gc.collect()
    for value in range(5, 10):
        block(runtime, value)
    captured.replay()
    assert seen(runtime, target) == {1}


CALLS: dict[str, Callable[[Any, Block], Any]] = {
    "allocate": lambda runtime, a: runtime.allocate(SIZE),
    "upload": lambda runtime, a: runtime.upload(np.zeros(SIZE, np.uint8), a),
    "download": lambda runtime, a: runtime.download(a, 0, SIZE),
    "synchronise": lambda runtime, a: runtime.synchronise(),
    "capture": lambda runtime, a: runtime.capture(lambda: None),
    "replay": lambda runtime, a: EARLIER[0].replay(),
}
EARLIER: list[Captured] = []
"""What was captured before."""


@pytest.mark.parametrize("call", CALLS)
def test_whatever_is_no_launch_is_refused_while_capturing(runtime: Any, call: str) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    EARLIER[:] = [chain(runtime, b, a)]

    def work() -> None:
        copy(runtime, a, b)
        CALLS[call](runtime, a)

    before = runtime.meter.reading()
    with pytest.raises(RuntimeError, match=f"^{call} while capturing"):
        runtime.capture(work)
    assert runtime.meter.since(before) == {}
    assert (seen(runtime, a), seen(runtime, b)) == ({1}, {2})


def test_after_a_capture_that_failed_launches_are_done_again(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    with pytest.raises(ZeroDivisionError):
        runtime.capture(lambda: copy(runtime, a, b) or 1 // 0)  # type: ignore[func-returns-value]
    copy(runtime, a, b)
    assert seen(runtime, b) == {1}
    chain(runtime, b, a).replay()
    assert seen(runtime, a) == {1}


@pytest.mark.parametrize("captured", [False, True])
def test_a_row_whose_launch_is_prepared_is_put(runtime: Runtime, captured: bool) -> None:
    """Of any source, to any slot; also if it is captured and replayed, and one launch to the meter."""
    geometry, random = Geometry(3, 32, 48), np.random.default_rng(5)
    ends = [Place(runtime.allocate(1024), runtime.allocate(1024), 32, 16, slots) for slots in (1, 5, 5)]
    other = runtime.allocate(1024)
    for filled in (other, *(b for end in ends for b in (end.keys, end.values))):
        runtime.upload(random.integers(0, 256, 1024, np.uint8), filled)
    source, *targets = ends
    write = writer(runtime, geometry, targets[0])
    for slot, row in ((3, source), (0, Place(other, source.keys, 48, 64, 1)), (4, source), (3, source)):
        before = runtime.meter.reading()
        if captured:
            runtime.capture(partial(write, row, slot)).replay()
        else:
            write(row, slot)
        assert runtime.meter.since(before) == {"launches": 1, "device_to_device": geometry.row_bytes}
        put(runtime, geometry, 1, row, targets[1], slot)
    for kind, width in (("keys", 32), ("values", 48)):
        at = 32 if kind == "keys" else 16
        found = [runtime.download(getattr(target, kind), at, 3 * 5 * width) for target in targets]
        for slot in (0, 3, 4):
            lines = [rows.reshape(3, 5, width)[:, slot] for rows in found]
            assert (lines[0] == lines[1]).all(), (kind, slot)
    with pytest.raises(AssertionError, match="a row of"):
        write(source, 5)
