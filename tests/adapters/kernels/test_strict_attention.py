"""The kernels of strict attention by themselves, wherever rows lie: to the bit what the reference makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from kvgpu import kernels
from kvgpu.runtime import Work
from kvgpu.runtimes import launch_shapes
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvref.arithmetic import strict_attention
from kvspec.geometry import DTYPES, Array
from support import slow
from support.device import strict_cases
from support.device.devices import adapter
from support.fakes import fake_cupy

RUNTIMES: dict[str, Callable[[], Any]] = {
    "opencl": lambda: adapter().runtime,
    "opencl wide": lambda: adapter(wide=True).runtime,
    "cuda-cpu": cache(CudaCPURuntime),
    "cuda-cpu, an item a group": cache(lambda: CudaCPURuntime(shape=lambda work: launch_shapes.cpu(work, 7))),
    "cupy": fake_cupy.runtime,
}


@pytest.mark.parametrize("lie", strict_cases.LIES)
@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("count", slow.counts(10, 120))
def test_random_cases_agree_to_the_bit(count: int, name: str, lie: str) -> None:
    runtime, some = RUNTIMES[name](), count // 5 if name == "opencl wide" else count
    assert [seed for seed in range(some) if not strict_cases.agree(strict_cases.drawn(seed), runtime, lie)] == []


@pytest.mark.parametrize("lie", ["ring", "pages"])
def test_the_text_for_a_cpu_gives_the_same_bits_on_a_simulator(lie: str) -> None:
    """Oclgrind takes the functions of OpenCL where PoCL takes those of its compiler."""
    runtime = OpenCLRuntime("oclgrind", text=kernels.source("cl", "cpu"))
    assert all(strict_cases.agree(strict_cases.drawn(seed), runtime, lie) for seed in range(4))


SHAPES = [((1, 1, 1), (1, 1, 1)), ((5, 3, 2), (2, 2, 3)), ((3, 1, 1), (7, 1, 1)), ((128, 1, 1), (1, 5, 2))]
"""Items of a group, and groups."""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("lie", ["ring", "pages"])
def test_any_launch_shape_does_all_the_work(shape: Any, lie: str) -> None:
    runtime = CudaCPURuntime(shape=lambda work: shape)
    assert all(strict_cases.agree(strict_cases.drawn(seed), runtime, lie) for seed in range(20))


PROBES = """
KERNEL probe(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *to, i64 what, i64 count) {
  for (i64 i = GROUP(0) * ITEMS(1) + ITEM(1); i < count; i += GROUPS(0) * ITEMS(1))
    if (ITEM(0) == 0)
      to[i] = what == 0 ? quotient(a[i], b[i]) : what == 1 ? power(a[i]) : what == 2 ? f16_in((u32)i) :
              what == 3 ? larger(a[i], b[i]) : below(a[i], b[i]);
}
"""
"""A kernel that calls the functions of strict.inc one by one."""


@cache
def probing(dialect: str) -> Any:
    """A runtime with the functions of strict.inc and nothing else."""
    text = kernels.text(f"prelude_{dialect}.h") + kernels.text("strict.inc") + PROBES
    made: Any = OpenCLRuntime if dialect == "cl" else CudaCPURuntime
    return made(text=text, names={"probe": 3})


def probed(dialect: str, what: int, a: Array, b: Array) -> Array:
    """What a function makes of numbers."""
    runtime = probing(dialect)
    blocks = [strict_cases.block(runtime, x) for x in (a, b, np.zeros_like(a))]
    runtime.launch("probe", Work(1, a.size), *blocks, what, a.size)
    found: Array = runtime.download(blocks[2], 0, a.nbytes).view(np.float32)[0]
    return found


def alike(found: Array, expected: Array) -> bool:
    """The same bits, any NaN the same."""
    return strict_cases.settled(found) == strict_cases.settled(expected)


DIALECTS = pytest.mark.parametrize("dialect", ["cl", "cuda"])


@DIALECTS
def test_quotients_are_rounded_to_nearest_even(dialect: str) -> None:
    random = np.random.default_rng(3)
    a = random.integers(0, 1 << 32, 1 << 18, np.uint64).astype(np.uint32).view(np.float32)
    b = (random.integers(127 << 23, 159 << 23, a.size).astype(np.uint32)).view(np.float32)
    few = random.random(a.size) < 0.5
    b[few] = random.integers(1, 1 << 12, a.size)[few]  # short divisors: ties among subnormal quotients
    a[:300] = (np.arange(300) * 7919).astype(np.uint32).view(np.float32)
    b[::1000], a[1:200:50] = np.nan, (0.0, -0.0, np.inf, -np.inf)
    with np.errstate(all="ignore"):
        assert alike(probed(dialect, 0, a, b), a / b)


@DIALECTS
def test_powers_are_those_of_the_reference(dialect: str) -> None:
    x = -np.abs(np.random.default_rng(5).standard_normal(1 << 18) * 50).astype(np.float32)
    near = np.float32(-125) + np.arange(-64, 64, dtype=np.float32) * np.float32(2**-17)
    x[:261] = [*near, *-np.arange(128, dtype=np.float32) / 2, 0, -0.0, -np.inf, np.nan, np.float32(-1e-45)]
    with np.errstate(all="ignore"):
        assert alike(probed(dialect, 1, x, x), strict_attention.exp2(x.astype(np.float64)).astype(np.float32))


@DIALECTS
def test_every_f16_number_is_read_as_it_is(dialect: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(DTYPES["f16"]).astype(np.float32)
    assert alike(probed(dialect, 2, every, every), every)


ODD = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -2.5, 1e-45], np.float32)


@DIALECTS
def test_nan_is_larger_than_all_and_minus_infinity_below_all(dialect: str) -> None:
    a, b = (x.ravel().copy() for x in np.meshgrid(ODD, ODD))
    with np.errstate(all="ignore"):
        assert alike(probed(dialect, 3, a, b), np.maximum(a, b))
        assert alike(probed(dialect, 4, a, b), np.where(a == -np.inf, a, a - b))
