"""The CuPy runtime without a GPU: its Python is the real one, the package `cupy` under it a stand-in."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adapters.runtimes.test_capture import SIZE, block, chain, copy, seen
from kvconform.generate import frozen_covers
from kvgpu.adapter import Caches
from kvgpu.adapters import CuPy
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.runtime import Work
from kvgpu.runtimes.capture import Recording
from kvgpu.runtimes.fast.cuda_fast import FastCuPyRuntime
from kvgpu.runtimes.nvidia import cupy, nvrtc
from kvspec.contract import Attention, Rope, description
from kvspec.errors import CannotRun
from kvspec.geometry import Config
from support.device.captured_batches import HEADS, KINDS, compared, stepped
from support.fakes import fake_cupy
from support.running.local_adapter import LocalAdapter
from support.twins import Twins


@pytest.fixture
def runtime() -> Any:
    return fake_cupy.runtime()


@pytest.fixture
def unshared() -> Iterator[None]:
    """The adapter makes its own runtime."""
    cupy.shared.cache_clear()
    yield
    cupy.shared.cache_clear()


def test_bytes_come_back_as_they_went(runtime: Any) -> None:
    source = np.arange(96, dtype=np.uint8)
    stored = runtime.allocate(96)
    runtime.upload(source, stored)
    source[:] = 0
    assert runtime.download(stored, 0, 96).tobytes() == bytes(range(96))
    assert runtime.download(stored, 5, 3, 4, 20).tolist() == [[5 + 20 * i + j for j in range(3)] for i in range(4)]
    assert runtime.download(stored, 8, 4, 3, 4).tolist() == [[8 + 4 * i + j for j in range(4)] for i in range(3)]


def test_uploads_and_downloads_wait_and_launches_never(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    before, waits = runtime.meter.reading(), runtime._stream.waits
    captured = chain(runtime, a, b)
    copy(runtime, a, b)
    captured.replay()
    assert runtime._stream.waits == waits
    assert len(runtime._stream.waiting) == 2
    runtime.synchronise()
    assert seen(runtime, b) == {1}
    runtime.upload(np.zeros(SIZE, np.uint8), a)
    waited = runtime._stream.waits - waits
    assert waited == 3
    assert runtime.meter.since(before) == {
        "host_to_device": SIZE,
        "device_to_host": SIZE,
        "device_to_device": 2 * SIZE,
        "launches": 2,
        "synchronisations": waited,
    }


def test_a_large_launch_has_many_blocks_not_large_ones(runtime: Any) -> None:
    words = 1 << 18
    target = runtime.allocate(4 * words)
    runtime.launch("prepare", Work(1, words), target, words, 1, 0, 0, 0, 0, 7)
    assert set(runtime.download(target, 0, 4 * words).view(np.uint32)[0].tolist()) == {7}


def test_a_released_block_is_reused_only_after_the_work_on_it(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    copy(runtime, a, b)
    a.release()
    block(runtime, 3)
    assert seen(runtime, b) == {1}


def test_an_allocation_that_is_too_large_changes_nothing(runtime: Any) -> None:
    gc.collect()
    before = runtime.meter.reading()
    with pytest.raises(MemoryError, match="no room for 67108865 bytes"):
        runtime.allocate((1 << 26) + 1)
    assert runtime.meter.since(before) == {}


def test_a_graph_is_what_a_replay_launches(runtime: Any) -> None:
    a, b, c = (block(runtime, n) for n in (1, 2, 3))
    captured = chain(runtime, a, b, c)
    runtime._kernels, kept = {}, runtime._kernels
    try:
        captured.replay()
    finally:
        runtime._kernels = kept
    assert seen(runtime, c) == {1}


def test_work_that_fails_leaves_no_capture_behind(runtime: Any) -> None:
    def work() -> None:
        copy(runtime, a, b)
        raise ZeroDivisionError

    a, b = block(runtime, 1), block(runtime, 2)
    with pytest.raises(ZeroDivisionError):
        runtime.capture(work)
    assert seen(runtime, b) == {2}


@pytest.mark.parametrize("nbytes", [1 << 38, (1 << 63) + 1])
def test_sizes_beyond_all_memory_are_no_room(runtime: Any, nbytes: int) -> None:
    with pytest.raises(MemoryError, match=f"the device has no room for {nbytes} bytes"):
        runtime.allocate(nbytes)


def test_a_capture_that_cuda_calls_off_leaves_a_runtime_that_works(runtime: Any, monkeypatch: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    real = fake_cupy.Stream.end_capture

    def called_off(stream: Any) -> None:
        real(stream)
        raise fake_cupy.CUDARuntimeError("cudaErrorStreamCaptureInvalidated", 901)

    monkeypatch.setattr(fake_cupy.Stream, "end_capture", called_off)
    with pytest.raises(fake_cupy.CUDARuntimeError, match="Invalidated"):
        runtime.capture(lambda: copy(runtime, a, b))
    monkeypatch.undo()
    assert seen(runtime, b) == {2}
    captured = runtime.capture(lambda: copy(runtime, a, b))
    captured.replay()
    assert seen(runtime, b) == {1}


def test_a_block_that_was_released_is_no_null_pointer(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    a.release()
    with pytest.raises(RuntimeError, match=r"^launch: argument 0 of move16 was released$"):
        copy(runtime, a, b)
    assert seen(runtime, b) == {2}


def test_a_replay_looks_for_released_blocks_only_after_a_release(runtime: Any, monkeypatch: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    captured, looks = runtime.capture(lambda: copy(runtime, a, b)), list[None]()
    real = Recording.check
    monkeypatch.setattr(Recording, "check", lambda self: (looks.append(None), real(self)))
    for _ in range(3):
        captured.replay()
    assert len(looks) == 1
    block(runtime, 3).release()
    captured.replay()
    assert len(looks) == 2
    with runtime.meter.paused():  # a count of the meter would be set back
        a.release()
    with pytest.raises(RuntimeError, match=r"argument 0 of move16 was released since"):
        captured.replay()


@pytest.mark.parametrize("status", [700, 719, 999])
def test_a_sticky_error_ends_the_process(runtime: Any, status: int, monkeypatch: Any, capsys: Any) -> None:
    def illegal(stream: Any) -> None:
        raise fake_cupy.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access", status)

    a = block(runtime, 1)
    monkeypatch.setattr(fake_cupy.Stream, "synchronize", illegal)
    with pytest.raises(SystemExit) as ended:
        seen(runtime, a)
    assert ended.value.code == 70
    assert "the GPU is lost to this process: cudaErrorIllegalAddress" in capsys.readouterr().err


def test_an_error_that_passes_does_not_end_the_process(runtime: Any, monkeypatch: Any) -> None:
    def refused(*_: Any) -> None:
        raise fake_cupy.CUDADriverError("CUDA_ERROR_INVALID_VALUE", 1)

    a, b = block(runtime, 1), block(runtime, 2)
    monkeypatch.setattr(runtime._kernels["move16"], "_launch", refused)
    with pytest.raises(fake_cupy.CUDADriverError, match="INVALID_VALUE"):
        copy(runtime, a, b)
    monkeypatch.undo()
    copy(runtime, a, b)
    assert seen(runtime, b) == {1}


LOSES_IT = """
from kvgpu.runtimes.nvidia.cuda_errors import DeviceLost, lost
from kvadapters.reference import Reference

class Error(RuntimeError):
    status = 700

class Cache:
    def __init__(self, cache):
        self._cache = cache

    def __getattr__(self, name):
        return getattr(self._cache, name)

    def append(self, keys, values):
        if keys.shape[2] == 3:
            raise lost(Error("cudaErrorIllegalAddress"))
        self._cache.append(keys, values)

class Loses(Reference):
    def open(self, kind, config):
        return Cache(super().open(kind, config))
"""


def test_a_worker_that_lost_its_gpu_is_a_crash_and_the_next_trace_has_another(tmp_path: Path) -> None:
    (tmp_path / "loses_it.py").write_text(LOSES_IT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])}

    def replayed(trace: str) -> str:
        command = sys.executable, "-m", "kvconform", "replay", trace, "--adapter", "loses_it:Loses"
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    found = replayed("growing: append 3")
    assert "CRASH" in found and "70" in found
    assert "CRASH" not in replayed("growing: append 2")


@pytest.mark.parametrize("kind", ["growing", "ring"])
def test_it_does_what_the_reference_does(runtime: Any, kind: str) -> None:
    twins = Twins(Caches("cupy", runtime, checks=True))
    twins.open(kind, Config(batch=2, window=4, step=4))
    for n in (3, 1, 1, 0, 7, 2):
        twins.append(n)
        twins.do({"op": "view"})
    twins.do({"op": "snapshot", "name": "p", "start": 0})
    twins.do({"op": "restore", "name": "p", "to": 0})


CHAPTERS = (
    *("growing", "ring", "mask", "snapshot", "copy", "store", "batch"),
    *("page", "bucket", "draft", "mem", "residency"),
)
COVERS = [frozen for chapter in CHAPTERS for frozen in frozen_covers.load(chapter)]


@pytest.mark.parametrize("every", [30, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("frozen", COVERS, ids=lambda c: c.name)
def test_a_share_of_the_covers_is_passed(runtime: Any, frozen: Any, every: int) -> None:
    under_test = LocalAdapter(Caches("cupy", runtime, checks=True))
    judged = [under_test.run(trace) for trace in itertools.islice(frozen.traces(), 0, None, every)]
    assert judged and not [outcome.trace for outcome in judged if outcome.failed]


def test_fast_attention_is_launched_with_the_shared_memory_that_was_asked_for(unshared: None) -> None:
    """The text of a geometry is compiled when it is first attended with; it is a GPU's that the CPU emulates. Four
    queries of four heads fill the columns of one kernel, nine are for the other."""
    config, random = Config(k_dim=32, v_dim=32, kv_heads=1, step=8), np.random.default_rng(0)
    queries, keys, values = (random.standard_normal((1, h, 9, 32), np.float32) for h in (4, 1, 1))
    found = []
    with fake_cupy.installed():
        for runtime in (fake_cupy.fast_runtime(), fake_cupy.runtime()):
            cache: Any = Caches("cupy-fast", runtime).open("growing", config)
            found.append(cache.attend(queries, keys.astype(np.float16), values.astype(np.float16), Attention()))
    assert fake_cupy.fast_runtime().knows("prefill_warps_runs_f16_32_32_4_64")
    assert found[0].tobytes() != found[1].tobytes() and np.abs(found[0] - found[1]).max() < 2e-3


def test_the_adapter_says_what_it_runs_on(unshared: None) -> None:
    with fake_cupy.installed():
        found = CuPy().describe()
    assert description(found).name == "cupy"
    assert found["device"] == "NVIDIA Stand-In"
    assert found["details"] == {
        "compute capability": "9.0",
        "memory": 1 << 26,
        "driver": "13.0",
        "runtime": "13.2",
        "nvrtc": "13.0",
        "cupy": "14.2.0",
    }


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"driver": 0}, "^there is no GPU: NVIDIA's driver is not installed$"),
        ({"devices": 0}, "^there is no GPU: NVIDIA's driver finds none$"),
        (
            {"busy": 46},
            r"^the GPU cannot be used: cudaErrorDevicesUnavailable: busy or unavailable \(driver 13.0, CUDA runtime"
            r" 13.2, NVRTC 13.0, CuPy 14.2.0, sm_90\)$",
        ),
        ({"fails": "cudaErrorNoDevice: none"}, "^there is no GPU that CUDA 13.2 can use: cudaErrorNoDevice: none$"),
    ],
)
def test_no_gpu_is_said_plainly(unshared: None, machine: dict[str, Any], said: str) -> None:
    with fake_cupy.installed(**machine), pytest.raises(CannotRun, match=said):
        CuPy()


def test_a_cubin_that_the_driver_does_not_take_is_said_with_versions(unshared: None, monkeypatch: Any) -> None:
    with fake_cupy.installed(), monkeypatch.context() as changed:
        changed.setattr(nvrtc, "kept", lambda text, architecture: b"for another driver")
        with pytest.raises(CannotRun, match=r"cannot be used: CUDA_ERROR_NO_BINARY_FOR_GPU.*\(driver 13.0, CUDA"):
            CuPy()


def test_a_gpu_without_the_tensor_cores_that_it_needs_is_left_to_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_cupy.installed(), monkeypatch.context() as changed:
        changed.setattr(nvrtc, "kept", lambda text, architecture: text.encode())
        changed.setattr(sys.modules["cupy"].cuda, "Device", lambda: SimpleNamespace(compute_capability="75"))
        with pytest.raises(CannotRun, match=r"compute capability 8\.0; this one has 7\.5: take cupy"):
            FastCuPyRuntime()


@pytest.mark.parametrize(
    ("gpu", "shared", "blocks"),
    [("A100", 164 << 10, 1), ("RTX 4090", 100 << 10, 1), ("H100", 228 << 10, 2), ("RTX 5090", 100 << 10, 1)],
)
def test_a_launch_has_as_many_blocks_as_have_room_at_once(
    gpu: str, shared: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_cupy.installed(), monkeypatch.context() as changed:
        changed.setattr(nvrtc, "kept", lambda text, architecture: text.encode())
        changed.setitem(fake_cupy.SIZES, "sharedMemPerMultiprocessor", shared)
        made = FastCuPyRuntime()
        assert (made.workers, made.multiprocessors) == (4 * blocks, 4), gpu


def test_no_cupy_is_said_with_what_brings_it(unshared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(CannotRun, match=r"CuPy cannot be imported .*pip install 'kvconform\[cupy\]'"):
        CuPy()


def test_no_nvrtc_is_said_by_name(unshared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.package())
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    with pytest.raises(
        CannotRun, match=r"NVRTC needs the package cuda-bindings .*pip install 'kvconform\[nvrtc\]'"
    ):
        CuPy()


def test_the_stand_in_has_nothing_that_cupy_lacks() -> None:
    real = pytest.importorskip("cupy", reason="CuPy is not installed; `nox -s cupy` installs it and runs this")
    assert not list(_lacking(fake_cupy.package(), real, "cupy"))


def _lacking(fake: Any, real: Any, name: str) -> Iterator[str]:
    for attribute in (a for a in dir(fake) if not a.startswith("_")):
        value = getattr(fake, attribute)
        if not hasattr(real, attribute):
            yield f"{name}.{attribute}"
        elif isinstance(value, SimpleNamespace | type | fake_cupy.Runtime):
            yield from _lacking(value, getattr(real, attribute), f"{name}.{attribute}")


@pytest.mark.parametrize("kind", KINDS)
def test_captured_batches_are_stepped_by_graphs(kind: str, unshared: None) -> None:
    """Nothing is done before somebody waits: a page number that came too late would be seen."""
    with fake_cupy.installed():
        many = KINDS[kind](Caches("cupy-fast", fake_cupy.fast_runtime()))
        step = CapturedBatchStep(many.batch, HEADS, Rope())
        for number in range(many.steps):
            stepped(many, step, number, Rope())
        compared(many)
