"""Triton compiles what the peer launches for an H100, without one, at the shapes of every model: it fits registers
and shared memory. Tensors have shapes and no memory, and a launch ends when it is compiled: nothing runs, and how
fast it would be nobody knows from this."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton is not installed; `nox -s peers` installs it")
pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("Triton is interpreted in this process and compiles nothing", allow_module_level=True)

import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from kvprofile.model_shapes import GEMMA, LLAMA_8B, MODELS, PHI, Model
from kvprofile.peers.gpu import paged, triton_kernels
from kvprofile.peers.gpu.triton_peer import Kernels

SHARED = 227 << 10
"""Bytes of shared memory that a program may have."""

SHAPES = {(model.heads // model.kv_heads, model.dim, model.v_dim): model for model in MODELS}


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What was compiled instead of launched."""
    found, run = list[Any](), JITFunction.run
    h100 = SimpleNamespace(
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
    )

    def only_compiled(self: Any, *arguments: Any, grid: Any, warmup: bool, **more: Any) -> None:
        assert max(grid[1:]) < 1 << 16, "a grid has less than 65,536 programs in its second and third dimension"
        found.append(run(self, *arguments, grid=grid, warmup=True, **more))

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(JITFunction, "run", only_compiled)
    monkeypatch.setattr(driver, "_active", h100)
    yield found
    for kernel in (triton_kernels.attend, triton_kernels.join, triton_kernels.append):
        kernel.device_caches.clear()


def library(splits: int) -> Kernels:
    made = Kernels(splits)
    made.device = "meta"
    return made


def empty(dtype: str, *shape: int) -> Any:
    return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")


def spilled(kernel: Any) -> int:
    ptxas = knobs.nvidia.ptxas.path
    done = subprocess.run(
        [ptxas, "-v", "-arch=sm_90a", "-o", os.devnull, "-"],
        input=kernel.asm["ptx"],
        capture_output=True,
        text=True,
    )
    return sum(map(int, re.findall(r"(\d+) bytes spill", done.stderr)))


def fits(kernel: Any) -> bool:
    return bool(kernel.metadata.shared <= SHARED and spilled(kernel) == 0)


@pytest.mark.parametrize("n", [1, 512])
@pytest.mark.parametrize("model", SHAPES.values(), ids=lambda model: model.id)
def test_attention_in_place_fits_an_h100(compiled: list[Any], model: Model, n: int) -> None:
    rows = 1, model.kv_heads, 4096 + n
    caches = empty("bfloat16", *rows, model.dim), empty("bfloat16", *rows, model.v_dim)
    library(1 if n > 1 else 8).attend(empty("bfloat16", 1, model.heads, n, model.dim), *caches)
    assert [kernel.name for kernel in compiled] == (["attend"] if n > 1 else ["attend", "join"])
    assert all(map(fits, compiled))
    assert by_tensor_cores(compiled[0]) and "cp.async" in compiled[0].asm["ptx"], "rows are loaded ahead"


@pytest.mark.parametrize("model", SHAPES.values(), ids=lambda model: model.id)
def test_a_batch_of_pages_fits_an_h100(compiled: list[Any], model: Model) -> None:
    """One launch appends, one attends to all sequences, one joins their splits."""
    made, pages = library(8), (10_000, model.kv_heads, 16)
    pool = empty("bfloat16", *pages, model.dim), empty("bfloat16", *pages, model.v_dim)
    new = [empty("bfloat16", 32, model.kv_heads, 1, part.shape[3]) for part in pool]
    batch = paged.Batch(np.zeros((32, 300), np.int32), np.full(32, 4096, np.int32), 1)
    plan = made.plan(batch, None)  # type: ignore[arg-type]
    made.append_pages(pool, plan, (new[0], new[1]))
    made.attend_pages(empty("bfloat16", 32, model.heads, 1, model.dim), pool, plan)
    assert [kernel.name for kernel in compiled] == ["append", "attend", "join"] and all(map(fits, compiled))
    assert by_tensor_cores(compiled[1]) and "cp.async" in compiled[1].asm["ptx"]


def by_tensor_cores(kernel: Any) -> bool:
    return re.search(r"mma\.sync|wgmma", kernel.asm["ptx"]) is not None


@pytest.mark.parametrize("model", [LLAMA_8B, GEMMA, PHI], ids=lambda model: model.id)
def test_attention_in_f32_rounds_nothing_to_tf32(compiled: list[Any], model: Model) -> None:
    cache = empty("float32", 1, model.kv_heads, 4096, model.dim)
    library(8).attend(empty("float32", 1, model.heads, 1, model.dim), cache, cache)
    assert all(map(fits, compiled)) and not by_tensor_cores(compiled[0])
