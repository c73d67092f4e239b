"""Launches of OpenCL kernels: how their arguments are set, the items they have, kernels that are learnt anew."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.runtime import Block, Meter, Work, prepared
from kvgpu.runtimes import launch_shapes, opencl_launches
from kvgpu.runtimes.opencl import OpenCLRuntime, shared
from kvgpu.runtimes.opencl_launches import Ready, setter
from kvgpu.runtimes.opencl_queues import SMALL

KEYS, VALUES = (SimpleNamespace(int_ptr=address) for address in (0x7F00, 0x7F80))
BLOCKS = Block(KEYS, 16, Meter()), Block(VALUES, 16, Meter())
NUMBERS = 3, -1, 1 << 40


class Outer:
    """A kernel of a PyOpenCL that has no inner calls."""

    num_args = 5

    def set_scalar_arg_dtypes(self, dtypes: list[Any]) -> None:
        self.dtypes = dtypes

    def set_args(self, *args: Any) -> None:
        self.given = list(args)


class Inner(Outer):
    """A kernel with them: each says which argument it sets to what."""

    def __init__(self) -> None:
        self.given: list[Any] = [None] * 5

    def _set_arg_buf_pack_multi(self, triples: tuple[Any, ...]) -> None:
        for place, kind, number in zip(triples[::3], triples[1::3], triples[2::3], strict=True):
            assert kind == b"l"
            self.given[place] = {KEYS.int_ptr: KEYS, VALUES.int_ptr: VALUES}.get(number, number)


@pytest.mark.parametrize("make", [Inner, Outer])
def test_every_argument_is_set(make: type[Any]) -> None:
    kernel = make()
    put = setter(kernel, 2)
    for numbers in (NUMBERS, NUMBERS[::-1]):
        put(*BLOCKS, *numbers)
        assert kernel.given == [KEYS, VALUES, *numbers]


@pytest.mark.parametrize("fixed", [{3: 7}, {2: 5, 4: -8}, {2: 0, 3: 1, 4: 2}])
@pytest.mark.parametrize("make", [Inner, Outer])
def test_some_arguments_are_set_to_the_same_each_time(make: type[Any], fixed: dict[int, int]) -> None:
    kernel = make()
    put, other = setter(kernel, 2, fixed), setter(kernel, 2, dict.fromkeys(fixed, 99))
    for numbers in (NUMBERS, NUMBERS[::-1]):
        told = [number for place, number in enumerate(numbers, 2) if place not in fixed]
        for blocks in (BLOCKS, BLOCKS[::-1]):
            other(*blocks, *told)
            put(*blocks, *told)
            wanted = [fixed.get(place, number) for place, number in enumerate(numbers, 2)]
            assert kernel.given == [*(block.handle for block in blocks), *wanted]


@pytest.mark.parametrize(("make", "error"), [(Inner, TypeError), (Outer, ValueError)])
def test_an_argument_too_few_is_no_launch(make: type[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        setter(make(), 2)(*BLOCKS, *NUMBERS[:2])


def test_a_block_that_was_released_is_no_argument() -> None:
    block = Block(KEYS, 16, Meter())
    block.release()
    with pytest.raises(AttributeError):
        setter(Inner(), 2)(BLOCKS[0], block, *NUMBERS)


def test_integers_of_64_bits_are_said_so_where_pyopencl_packs_them() -> None:
    kernel = Outer()
    setter(kernel, 2)
    assert kernel.dtypes == [None, None, *[np.int64] * 3]


def test_items_are_those_of_all_groups() -> None:
    enqueued: list[Any] = []
    cl = SimpleNamespace(enqueue_nd_range_kernel=lambda *given: enqueued.append(given))
    Ready(cl, ("kernel", lambda *args: None, 0), ((2, 3, 1), (5, 7, 11))).enqueue("queue")
    assert enqueued == [("queue", "kernel", (10, 21, 11), (2, 3, 1))]


TELLING = """
__kernel void tells_%(kernel)d(__global long *to, __global const long *from, long a, long b) {
  if (get_global_id(0) + get_global_id(1) + get_global_id(2)) return;
  to[0] = %(kernel)d; to[1] = *from; to[2] = a; to[3] = b;
  for (int i = 0; i < 3; ++i) to[4 + i] = get_local_size(i), to[7 + i] = get_num_groups(i);
}
"""
"""A kernel that writes which it is, what it was given, and its shape."""

TELLERS, NAMES = "".join(TELLING % {"kernel": i} for i in range(2)), dict.fromkeys(("tells_0", "tells_1"), 2)

CHANGING: tuple[tuple[int, ...], ...] = (), (0,), (1,), (0, 1)
WORKS = Work(1, 1), Work(1, 64), Work(64, 1), Work(16, 5, 3, 2), Work(16, 64, 8, 2)
SHAPED = {"as a CPU does": None, "a word an item": launch_shapes.gpu}


@pytest.mark.parametrize("shape", SHAPED.values(), ids=SHAPED)
@pytest.mark.parametrize("integer", ["l", "i"], ids=["inner calls", "set_args"])
def test_each_of_many_launches_has_its_own_kernel_shape_and_arguments(
    monkeypatch: pytest.MonkeyPatch, integer: str, shape: launch_shapes.Shape | None
) -> None:
    """In any order, to blocks of equal size, of which some are given back and others take their place."""
    monkeypatch.setattr(opencl_launches, "LONG", integer)  # one of 32 bits is not packed
    runtime, random = OpenCLRuntime("", kernels.text("prelude_cl.h"), {}, shape), np.random.default_rng(3)
    runtime.learn(TELLERS, NAMES)
    sources = [uploaded(runtime, np.array([100 + i])) for i in range(3)]
    targets = [uploaded(runtime, np.zeros(10, np.int64)) for _ in range(3)]
    for turn in range(200 if runtime.workers > 1 else 20):
        kernel, work, a, b, i, j = (int(random.integers(n)) for n in (2, len(WORKS), 2, 1 << 40, 3, 3))
        runtime.launch(f"tells_{kernel}", WORKS[work], targets[i], sources[j], a, -b)
        found = runtime.download(targets[i], 0, 80).view(np.int64)[0]
        axes = itertools.chain(*runtime._shape(f"tells_{kernel}", WORKS[work]))
        assert found.tolist() == [kernel, 100 + j, a, -b, *axes], turn
        runtime.upload(np.zeros(10, np.int64), targets[i])
        targets[i] = elsewhere(runtime, targets[i])


CHANGING = (), (0,), (1,), (0, 1)


@pytest.mark.parametrize("integer", ["l", "i"], ids=["inner calls", "set_args"])
def test_of_launches_that_are_prepared_at_once_each_has_its_own_arguments(
    monkeypatch: pytest.MonkeyPatch, integer: str
) -> None:
    monkeypatch.setattr(opencl_launches, "LONG", integer)
    runtime, random = OpenCLRuntime("", kernels.text("prelude_cl.h"), {}), np.random.default_rng(4)
    runtime.learn(TELLERS, NAMES)
    source, target = uploaded(runtime, np.array([100])), uploaded(runtime, np.zeros(10, np.int64))
    names, each = itertools.cycle(NAMES), itertools.product(WORKS, CHANGING)
    made = [(next(names), work, (i, 50 + i), changing) for i, (work, changing) in enumerate(each)]
    starts = [prepared(runtime, *what) for what in made]
    for i in random.permutation(len(made)).tolist():
        kernel, work, numbers, changing = made[i]
        changed = [int(n) for n in random.integers(1 << 40, size=len(changing))]
        wanted = [changed[changing.index(k)] if k in changing else number for k, number in enumerate(numbers)]
        starts[i](target, source, *changed)
        found = runtime.download(target, 0, 80).view(np.int64)[0].tolist()
        assert found[:4] == [list(NAMES).index(kernel), 100, *wanted]
        runtime.launch(kernel, work, target, source, *wanted)
        assert runtime.download(target, 0, 80).view(np.int64)[0].tolist() == found


def elsewhere(runtime: OpenCLRuntime, block: Block) -> Block:
    """Release a block, and give one that lies elsewhere; Python puts it where the former one was."""
    nbytes = block.nbytes
    block.release()
    taken = runtime.allocate(nbytes)
    del block
    made = runtime.allocate(nbytes)
    taken.release()
    return made


def uploaded(runtime: OpenCLRuntime, numbers: Any) -> Block:
    block = runtime.allocate(numbers.nbytes)
    runtime.upload(numbers, block)
    return block


def test_each_launch_is_small_or_not_by_its_own_size(
    runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bool] = []
    launching = runtime._queues.launching
    monkeypatch.setattr(runtime._queues, "launching", lambda small: said.append(small) or launching(small))
    block = runtime.allocate(16)
    for rows in (1, SMALL, SMALL + 1, 1, SMALL + 1):
        runtime.launch("bound", Work(1, rows), block, 0, 0, 0, 0, 0)
    assert said == [True, True, False, True, False]


def test_a_name_learnt_anew_is_the_new_kernel(runtime: OpenCLRuntime) -> None:
    found, block = [], runtime.allocate(16)
    for number in (41, 42):
        runtime.learn(f"__kernel void learnt(__global int *to) {{ *to = {number}; }}", {"learnt": 1})
        runtime.launch("learnt", Work(1, 1), block)
        found.append(runtime.download(block, 0, 4).view(np.int32).item())
    assert found == [41, 42]


def test_a_released_block_is_not_kept_by_the_last_launch(runtime: OpenCLRuntime) -> None:
    block = runtime.allocate(1 << 20)
    runtime.launch("clear", Work(32, 1), block, 32, 32, 0, 32, 32, 32)
    runtime.synchronise()
    held = runtime._pool.held_blocks
    block.release()
    assert runtime._pool.held_blocks == held + 1


@pytest.fixture
def runtime() -> OpenCLRuntime:
    found = shared("")
    if found._pool is None:
        pytest.skip("a simulator gives every block memory of its own")
    return found
