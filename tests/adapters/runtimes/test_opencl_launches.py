"""Launches of OpenCL kernels: how their arguments are set, the items they have, kernels that are learnt anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kvgpu.runtime import Block, Meter, Work
from kvgpu.runtimes.opencl import OpenCLRuntime, shared
from kvgpu.runtimes.opencl_launches import Ready, setter

BLOCKS = Block("keys", 16, Meter()), Block("values", 16, Meter())
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

    def _set_arg_multi(self, pairs: tuple[Any, ...]) -> None:
        for place, handle in zip(pairs[::2], pairs[1::2], strict=True):
            self.given[place] = handle

    def _set_arg_buf_pack_multi(self, triples: tuple[Any, ...]) -> None:
        for place, kind, number in zip(triples[::3], triples[1::3], triples[2::3], strict=True):
            assert kind == b"l"
            self.given[place] = number


@pytest.mark.parametrize("make", [Inner, Outer])
def test_every_argument_is_set(make: type[Any]) -> None:
    kernel = make()
    put = setter(kernel, 2)
    for numbers in (NUMBERS, NUMBERS[::-1]):
        put((*BLOCKS, *numbers))
        assert kernel.given == ["keys", "values", *numbers]


def test_an_argument_too_few_is_no_launch() -> None:
    with pytest.raises(ValueError, match="extended slice"):
        setter(Inner(), 2)((*BLOCKS, *NUMBERS[:2]))


def test_integers_of_64_bits_are_said_so_where_pyopencl_packs_them() -> None:
    kernel = Outer()
    setter(kernel, 2)
    assert kernel.dtypes == [None, None, *[np.int64] * 3]


def test_items_are_those_of_all_groups() -> None:
    enqueued: list[Any] = []
    cl = SimpleNamespace(enqueue_nd_range_kernel=lambda *given: enqueued.append(given))
    Ready(cl, ("kernel", lambda args: None), ((2, 3, 1), (5, 7, 11))).start("queue", ())
    assert enqueued == [("queue", "kernel", (10, 21, 11), (2, 3, 1))]


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
