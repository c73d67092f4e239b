"""What the pool of an OpenCL device keeps for later is bounded, and is given out again."""

from __future__ import annotations

from typing import Any

import pytest

from kvgpu.runtimes import opencl
from kvgpu.runtimes.opencl import KEPT, OpenCLRuntime, shared

MIB = 1 << 20
BLOCKS = [n * 4 * MIB for n in range(1, 17)]
"""Bytes of blocks of many sizes: 544 MiB, if the pool keeps each of them."""


@pytest.fixture
def runtime() -> OpenCLRuntime:
    there = shared("")
    there.give_back()
    return there


def kept(runtime: Any) -> int:
    return int(runtime._pool.managed_bytes - runtime._pool.active_bytes)


def free(runtime: Any, blocks: list[int]) -> None:
    """Take blocks and let go of them, one after another."""
    for nbytes in blocks:
        runtime.allocate(nbytes)


def test_a_pool_keeps_little_of_blocks_of_many_sizes(runtime: OpenCLRuntime) -> None:
    free(runtime, BLOCKS)
    runtime.allocate(1)
    assert kept(runtime) <= KEPT + max(BLOCKS)


def test_it_keeps_as_much_as_is_in_use(runtime: OpenCLRuntime) -> None:
    used = [runtime.allocate(nbytes) for nbytes in BLOCKS[:8]]
    free(runtime, BLOCKS[:8])
    assert kept(runtime) >= sum(BLOCKS[:8]) > KEPT
    del used
    free(runtime, [1, 1])
    assert kept(runtime) <= KEPT


def test_what_it_keeps_is_given_out_again(runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    free(runtime, [MIB])
    managed = runtime._pool.managed_bytes
    free(runtime, [MIB] * 10)
    assert runtime._pool.managed_bytes == managed
    monkeypatch.setattr(opencl, "KEPT", 0)
    free(runtime, [2 * MIB, 3 * MIB])
    active = runtime._pool.active_bytes  # more than that is given back, before the last block is taken
    assert kept(runtime) <= active + 4 * MIB
