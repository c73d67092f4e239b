"""Casts to the bit: all f16 and bf16 numbers, what lies between them, and every f32 where a cast could go wrong.

`tests/tools/all_casts.py` (`nox -s casts`) does the same with all f32 there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu import kernels
from kvgpu.adapters import CudaCPU
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvref.arithmetic.casts import narrowed
from kvspec.geometry import DTYPES, Array, Config
from kvspec.rows.fills import EDGES, cast, settled
from support import slow
from support.device.devices import adapter
from tools import all_casts

NARROW = ("f16", "bf16")
ADAPTERS: dict[str, Callable[[], Any]] = {
    "reference": Reference,
    "opencl": adapter,
    "opencl wide": lambda: adapter(wide=True),
    "cuda-cpu": cache(CudaCPU),
}
DIMS = {"four at a time": (256, 128), "one by one": (251, 129)}


def every(dtype: str) -> Array:
    """Every value of a dtype of two bytes."""
    return np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(DTYPES[dtype])


@cache
def tried(dtype: str) -> Array:
    """f32: each number of a dtype, the middle between it and the next, and the two neighbours of both; NaN of all
    sorts; the edges."""
    with np.errstate(invalid="ignore"):
        exact = every(dtype).astype(np.float32)
    finite = np.sort(exact[np.isfinite(exact) & (exact >= 0)])
    largest = finite[-1].astype(np.float64)
    beyond = np.float32(largest + (largest - finite[-2].astype(np.float64)) / 2)
    middle = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)
    bits = np.concatenate([finite, middle, [beyond]]).astype(np.float32).view(np.uint32).astype(np.int64)
    near = np.unique(np.concatenate([bits - 1, bits, bits + 1]))
    near = near[(near >= 0) & (near < 1 << 31)]
    nan = (np.int64(0x7F800000) + (np.int64(1) << np.arange(23))).repeat(2) + np.tile([0, 1], 23)
    positive = np.concatenate([near, nan, EDGES[: len(EDGES) // 2].view(np.uint32)]).astype(np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)]).view(np.float32)


def copied(adapter_: Any, source: Array, dtype: str, layout: str, dims: tuple[int, int]) -> Array:
    """The values as a buffer holds them after one copy, spread over keys and values of two heads."""
    k_dim, v_dim = dims
    rows = -(-source.size // (2 * sum(dims)))
    padded = np.resize(source, rows * 2 * sum(dims))
    keys, values = padded[: rows * 2 * k_dim], padded[rows * 2 * k_dim :]
    config = Config(kv_heads=2, k_dim=k_dim, v_dim=v_dim, dtype=dtype, capacity=rows, layout=layout)
    buffer = adapter_.open("copy", config)
    buffer.copy(keys.reshape(rows, 2, k_dim), values.reshape(rows, 2, v_dim), rows, 0, False)
    found = (a.transpose(1, 0, 2) if layout == "head" else a for a in buffer.read("state"))
    return np.concatenate([a.reshape(-1) for a in found])[: source.size]


def same(found: Array, expected: Array) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_what_is_tried_is_enough() -> None:
    for dtype, count in (("f16", 380_000), ("bf16", 390_000)):
        x = tried(dtype)
        assert x.size > count and np.isnan(x).sum() > 90 and np.isinf(x).any()
        kept = cast(x, dtype)
        assert len(np.unique(kept.view(np.uint16))) == len(np.unique(settled(every(dtype)).view(np.uint16)))


@pytest.mark.parametrize("dims", DIMS.values(), ids=DIMS)
@pytest.mark.parametrize("layout", ["token", "head"])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ADAPTERS)
def test_f32_is_rounded_to_nearest_even_once(name: str, dtype: str, layout: str, dims: tuple[int, int]) -> None:
    found = copied(ADAPTERS[name](), tried(dtype), dtype, layout, dims)
    assert same(settled(found), cast(tried(dtype), dtype))


@pytest.mark.parametrize("dims", DIMS.values(), ids=DIMS)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ADAPTERS)
def test_every_bit_of_every_value_is_kept(name: str, dtype: str, dims: tuple[int, int]) -> None:
    assert same(copied(ADAPTERS[name](), every(dtype), dtype, "head", dims), every(dtype))
    assert same(copied(ADAPTERS[name](), tried(dtype), "f32", "token", dims), tried(dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_a_narrower_value_that_was_widened_comes_back(dtype: str) -> None:
    with np.errstate(invalid="ignore"):
        wide = every(dtype).astype(np.float32)
    assert same(settled(narrowed(wide, dtype)), settled(every(dtype)))


def twice(array: Array, dtype: str) -> Array:
    """Rounded to 13 binary digits first."""
    bits = array.view(np.uint32)
    step = np.uint32(1 << 11)
    return cast(((bits + step // 2 - 1 + (bits // step & 1)) & ~(step - 1)).view(np.float32), dtype)


def truncated(array: Array, dtype: str) -> Array:
    return (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(DTYPES["bf16"])


def added(array: Array, dtype: str) -> Array:
    """Half added before the digits are cut off, so that ties go up."""
    return ((array.view(np.uint32) + np.uint32(0x8000)) >> np.uint32(16)).astype(np.uint16).view(DTYPES["bf16"])


def flushed(array: Array, dtype: str) -> Array:
    made = cast(array, dtype)
    return np.where(np.abs(made) < np.float32(2.0**-14), np.copysign(made.dtype.type(0), made), made)


def clamped(array: Array, dtype: str) -> Array:
    made = cast(array, dtype)
    return np.where(np.isinf(made), np.copysign(made.dtype.type(65504), made), made)


def unsigned(array: Array, dtype: str) -> Array:
    return cast(array, dtype) + DTYPES[dtype].type(0)


@pytest.mark.parametrize(
    ("wrong", "dtype"),
    [(twice, "f16"), (truncated, "bf16"), (added, "bf16"), (flushed, "f16"), (clamped, "f16"), (unsigned, "bf16")],
)
def test_a_wrong_cast_is_found(wrong: Callable[[Array, str], Array], dtype: str) -> None:
    x = tried(dtype)
    assert not same(settled(wrong(x, dtype)), cast(x, dtype))
    assert not same(settled(wrong(EDGES, dtype)), cast(EDGES, dtype))


@pytest.mark.parametrize(
    ("right", "wrong"),
    slow.one_in(
        4,
        [
            ("x + 0x7fffu", "x + 0x8000u"),
            ("return 0x7fc0u", "return 0x7f80u"),
            ("- 1u +", "+"),
            ("0x477ff", "0x477fe"),
        ],
    ),
)
def test_the_search_through_all_values_finds_a_kernel_that_is_wrong(right: str, wrong: str) -> None:
    text = kernels.source("cuda")
    assert text.count(right) == 1
    names = {n: 4 for n in kernels.COPIES if n.startswith("cast")}
    broken = all_casts.Casts("broken", CudaCPURuntime(text.replace(right, wrong), names))
    bits = {"x + 0x7fffu": 0x3F800000, "return 0x7fc0u": 0x7F800000}.get(right, 0x47000000)
    assert list(all_casts.wrong([broken], bits))
