"""Commands take effect in order, whether a thread of the device does them or the calling one."""

from __future__ import annotations

from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kvgpu.memory.layout import Geometry, Place, move
from kvgpu.runtime import Block, Meter, Work
from kvgpu.runtimes.opencl import HALVED, OpenCLRuntime, shared
from kvgpu.runtimes.opencl_devices import candidates
from kvgpu.runtimes.opencl_queues import SMALL, SMALL_BLOCKS, Queues, small, words

RUNNING, COMPLETE = 1, 0


class Queue:
    """A queue that counts how often somebody waits for it."""

    def __init__(self, context: Any, device: str, properties: int) -> None:
        self.device, self.waits = device, 0

    def finish(self) -> None:
        self.waits += 1


FAKE = SimpleNamespace(
    CommandQueue=Queue,
    command_queue_properties=SimpleNamespace(PROFILING_ENABLE=2),
    command_execution_status=SimpleNamespace(COMPLETE=COMPLETE),
)
MANY = Work(16, 512, 8, 2)


def test_a_small_command_is_the_callers_while_nothing_runs() -> None:
    queues = Queues(FAKE, None, "threads", "caller")
    assert queues.launching(True).device == "caller"
    assert queues.launching(False).device == "threads"
    queues.newest = SimpleNamespace(command_execution_status=RUNNING)
    assert queues.launching(True).device == "threads"
    queues.newest.command_execution_status = COMPLETE
    assert queues.launching(True).device == "caller"


def test_each_queue_waits_for_the_other() -> None:
    queues = Queues(FAKE, None, "threads", "caller")
    caller: Any = queues.waiting()
    assert (caller.device, queues.own.waits) == ("caller", 1)
    assert queues.streaming() is queues.own and caller.waits == 1
    queues.finish()
    assert (queues.own.waits, caller.waits) == (2, 2)


def test_a_device_without_that_has_one_queue() -> None:
    queues = Queues(FAKE, None, "gpu")
    assert queues.launching(True) is queues.waiting() is queues.streaming() is queues.own
    assert queues.own.waits == 0


def test_what_is_small() -> None:
    blocks = [Block("memory", SMALL_BLOCKS // 2, Meter()) for _ in range(3)]
    assert words("move16", MANY) == 16 * 512 * 8 * 2 and words("step16", Work(16, 1, 64)) == 16 * 64 * 32
    assert small(SMALL, ()) and not small(SMALL + 1, ())
    for kernel in ("attend_runs_f16", "scores_pages_f32", "join_rows_f16"):
        assert words(kernel, MANY) is None
    assert small(None, (*blocks[:2], 1 << 40)) and not small(None, tuple(blocks))


def device(name: str) -> Any:
    return SimpleNamespace(name=name, type=2)


def test_the_device_without_threads_is_no_candidate_but_stands_beside_one() -> None:
    devices = [device(name) for name in ("basic-EPYC", "pthread-EPYC", "basic-Xeon", "GeForce")]
    platform = SimpleNamespace(name="PoCL", version="PoCL 3.0", get_devices=lambda: devices)
    cl = SimpleNamespace(get_platforms=lambda: [platform], Error=RuntimeError, device_type=SimpleNamespace(GPU=4))
    found = {c.name: c.caller and c.caller.name for c in candidates(cl)}
    assert found == {"pthread-EPYC": "basic-EPYC", "basic-Xeon": None, "GeForce": None}


@pytest.fixture(scope="module")
def runtime() -> OpenCLRuntime:
    return shared("")


def test_rows_that_two_queues_move_are_those_of_one(runtime: OpenCLRuntime) -> None:
    """A long copy, a short one of what it wrote, and a long one back, with no wait between them."""
    geometry, rows = Geometry(8, 256, 256), 4096
    blocks = [runtime.allocate(geometry.packed(rows)[1]) for _ in range(2)]
    first, second = (Place.packed(block, geometry, rows) for block in blocks)
    row = Place.packed(runtime.allocate(geometry.packed(1)[1]), geometry, 1)
    rounds = 20 if runtime.workers > 1 else 2  # a simulator is slow, and has one queue
    for i in range(1, 1 + rounds):
        runtime.upload(np.full(blocks[0].nbytes, i, np.uint8), blocks[0])
        move(runtime, geometry, rows, first.span(), second.span())
        move(runtime, geometry, 1, second.span(rows - 1), row.span())
        runtime.upload(np.zeros(blocks[0].nbytes, np.uint8), blocks[0])
        move(runtime, geometry, 1, row.span(), first.span(7))
        found = runtime.download(blocks[0], 7 * 256, 256)
        assert (runtime.download(row.keys, 0, row.keys.nbytes) == i).all() and (found == i).all()


@pytest.mark.parametrize(
    ("at", "width", "height", "pitch"),
    [
        (0, HALVED, 1, 0),
        (5, HALVED + 3, 1, 0),
        (7, HALVED // 3, 5, HALVED // 3),
        (3, HALVED // 3, 5, HALVED // 2),
        (1, 200, HALVED // 128, 333),
        (9, HALVED - 1, 1, 0),
    ],
)
def test_halves_of_a_large_download_are_what_one_copy_gives(at: int, width: int, height: int, pitch: int) -> None:
    runtime = shared("")
    host = np.random.default_rng(1).integers(0, 256, at + height * max(width, pitch), np.uint8)
    block = runtime.allocate(host.nbytes)
    runtime.upload(host, block)
    found = runtime.download(block, at, width, height, pitch)
    wanted = [host[(begin := at + line * (pitch or width)) : begin + width] for line in range(height)]
    assert (found.shape, found.tobytes()) == ((height, width), b"".join(w.tobytes() for w in wanted))


def test_what_runs_at_once_counts_once() -> None:
    """Halves that are copied at the same time do not make work longer than it was."""
    runtime = shared("")
    block = runtime.allocate(8 * HALVED)
    begin = perf_counter()
    ran = runtime.elapsed(lambda: [runtime.download(block, 0, block.nbytes) for _ in range(8)] and None)
    assert 0 < ran <= perf_counter() - begin
