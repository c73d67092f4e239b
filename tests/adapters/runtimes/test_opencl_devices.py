"""Which device is taken, what is said about it, and what happens where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvadapters.find import load
from kvgpu.adapters import OpenCL
from kvgpu.runtimes import build_folder, opencl, opencl_devices
from kvgpu.runtimes.opencl_devices import Candidate, candidates, choose
from kvspec.contract import description
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Config
from support.device.devices import adapter

GPU = Candidate("NVIDIA CUDA", "OpenCL 3.0 CUDA 12.4", "H100", True)
INTEL = Candidate("Intel(R) OpenCL", "OpenCL 3.0 LINUX", "Xeon", False)
POCL_NEW = Candidate("Portable Computing Language", "OpenCL 3.0 PoCL 3.1+debian  Linux", "pthread-znver5", False)
POCL_OLD = Candidate("Portable Computing Language", "OpenCL 3.0 PoCL 3.0-rc2  Linux", "pthread-znver5", False)
POCL_GPU = Candidate("Portable Computing Language", "OpenCL 3.0 PoCL 3.1  Linux", "GeForce", True)
OCLGRIND = Candidate("Oclgrind", "OpenCL 1.2 (Oclgrind 21.10)", "Oclgrind Simulator", True)
RANKED = [GPU, INTEL, POCL_NEW, POCL_OLD, OCLGRIND]


def test_devices_rank_by_what_they_are_and_oclgrind_last_whatever_it_says() -> None:
    assert sorted([OCLGRIND, POCL_OLD, INTEL, POCL_NEW, GPU], key=lambda c: c.rank) == RANKED
    assert POCL_GPU.kind == GPU.kind
    assert POCL_NEW.label == "Portable Computing Language (PoCL 3.1+debian): pthread-znver5"


class FakeCl:
    """An OpenCL whose devices are these candidates, and of which some fail when they are tried."""

    class Error(Exception):
        """As pyopencl.Error."""

    device_type = SimpleNamespace(GPU=4)

    def __init__(self, there: list[Candidate], failing: list[Candidate]) -> None:
        self.there, self.failing = there, failing

    def get_platforms(self) -> list[Any]:
        def device(c: Candidate) -> Any:
            return SimpleNamespace(name=c.name, type=15 if c.gpu else 2, fails=c in self.failing, int_ptr=0)

        def platform(c: Candidate) -> Any:
            return SimpleNamespace(name=c.platform, version=c.version, get_devices=lambda: [device(c)])

        return [platform(c) for c in self.there]


@pytest.fixture(autouse=True)
def proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices of a FakeCl work, or fail as PoCL does on a processor its compiler does not know."""
    real = opencl_devices._proven

    def prove(cl: Any, *devices: Any) -> Any:
        if not isinstance(cl, FakeCl):
            return real(cl, *devices)
        if devices[0].fails:
            raise RuntimeError("clBuildProgram failed\n\nerror: unknown target CPU 'generic'\n(source saved)")
        return "context"

    monkeypatch.setattr(opencl_devices, "_proven", prove)
    monkeypatch.delenv(opencl_devices.SELECT, raising=False)


def test_the_first_that_works_is_taken_and_all_are_accounted_for() -> None:
    choice = choose(FakeCl([OCLGRIND, POCL_OLD, INTEL], [INTEL]))
    assert choice.taken.label == POCL_OLD.label and choice.context == "context"
    told = choice.describe()
    assert [t["result"] for t in told["tried"]] == [
        "failed: RuntimeError: error: unknown target CPU 'generic'",
        "works",
        "ranked below, not tried",
    ]
    assert told["why"].startswith("PoCL") and "GPU" in told["faster"]


def test_pocl_is_told_which_processor_it_runs_on_where_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(devices: list[Any]) -> str:
        for device in devices:
            device.fails = False
        return "haswell"

    monkeypatch.setattr(opencl_devices.pocl_cpu, "tell", tell)
    choice = choose(FakeCl([POCL_OLD, OCLGRIND], [POCL_OLD]))
    assert choice.taken.label == POCL_OLD.label and choice.context == "context"
    told = "works; it does not know this processor, and was told that it is a haswell"
    assert choice.tried[0] == (POCL_OLD.label, told)


def test_a_variable_selects_by_platform_or_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cl = FakeCl(RANKED, [])
    assert choose(cl).taken.label == GPU.label
    for text, taken in (("oclGRIND", OCLGRIND), ("xeon", INTEL), ("3.0-rc2", POCL_OLD)):
        monkeypatch.setenv(opencl_devices.SELECT, text)
        assert choose(cl).taken.label == taken.label


@pytest.mark.parametrize(
    ("there", "failing", "text", "why"),
    [
        ([], [], "", "there is none"),
        ([INTEL], [INTEL], "", "unknown target CPU"),
        ([GPU], [], "amd", "left out by KVCONFORM_OPENCL=amd"),
    ],
)
def test_no_device_that_works_cannot_run(there: Any, failing: Any, text: str, why: str) -> None:
    with pytest.raises(CannotRun, match=why) as e:
        choose(FakeCl(there, failing), text)
    assert "pip install 'kvconform[opencl]'" in str(e.value)


def test_platforms_that_cannot_be_asked_have_no_devices() -> None:
    cl = FakeCl([], [])

    def fails() -> Any:
        raise cl.Error("PLATFORM_NOT_FOUND_KHR")

    cl.get_platforms = lambda: [SimpleNamespace(get_devices=fails)]  # type: ignore[method-assign]
    assert list(candidates(cl)) == []
    cl.get_platforms = fails  # type: ignore[method-assign]
    assert list(candidates(cl)) == []


def test_without_pyopencl_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(CannotRun, match=r"pip install 'kvconform\[opencl\]'"):
        opencl.OpenCLRuntime()


def test_what_it_says_of_itself_is_a_description() -> None:
    told = adapter().describe()
    said = description(json.loads(json.dumps(told)))
    assert said.claims("growing", "storage") and said.claims("ring", "storage")
    assert said.chapters["growing"].grows == "step" and said.chapters["ring"].grows == "free"
    assert any(t["result"].startswith("works") for t in told["details"]["tried"])
    assert isinstance(load("opencl"), OpenCL)


def test_another_kind_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="growing, ring"):
        adapter().open("sheet", Config())


ALONE = """
from kvgpu.adapters import OpenCL
from kvspec.geometry import Array, Config
import numpy as np
cache = OpenCL().open("ring", Config(window=2))
cache.append(np.ones((1, 2, 3, 8), np.float16), np.ones((1, 2, 3, 6), np.float16))
assert (cache.read("state").keys == 1).all()
"""


def test_it_says_nothing_and_leaves_nothing_at_home(tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    there = {k: v for k, v in os.environ.items() if not k.startswith(("POCL", "PYOPENCL", "XDG"))}
    env = there | {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", ALONE], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(home.iterdir()) == []


def test_a_cache_folder_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = build_folder.folder("test")
    assert usual == build_folder.folder("test") and os.stat(usual).st_mode & 0o777 == 0o700
    os.chmod(usual, 0o777)
    assert build_folder.folder("test") != usual
    os.rmdir(usual)
    os.symlink(tmp_path, usual)
    assert build_folder.folder("test") != usual


@pytest.mark.parametrize(("wide", "old_pocl"), [(False, 8), (True, 16)])
def test_vectors_are_as_wide_as_compiles(wide: bool, old_pocl: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl_devices.pocl_cpu, "wide", lambda: wide)
    assert [c.lanes for c in RANKED] == [16, 16, 16, old_pocl, 16]


def test_memory_that_was_released_is_taken_again() -> None:
    runtime = opencl.shared(os.environ.get(opencl_devices.SELECT, ""))
    if not runtime.cpu or runtime.workers == 1:
        pytest.skip("a simulator allocates each buffer by itself")
    first = runtime.allocate(12345)
    place = first.handle.int_ptr
    first.release()
    assert runtime.allocate(12345).handle.int_ptr == place


@pytest.mark.parametrize(("cores", "pinned"), [({0, 1, 2}, "1"), ({1, 2}, None), (set(), None)])
def test_threads_are_pinned_where_every_core_is_ours(
    cores: set[int], pinned: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL pins its thread i to core i: on a core that is not ours that fails."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.delenv(opencl_devices.AFFINITY, raising=False)
    opencl.imported()
    assert os.environ.get(opencl_devices.AFFINITY) == pinned


def test_a_record_says_where_threads_stay() -> None:
    taken = opencl.shared("").describe()["details"]
    assert taken["threads"] in opencl_devices.PINNED.values()


def test_what_a_user_says_of_threads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(opencl_devices.AFFINITY, "0")
    opencl.imported()
    assert os.environ[opencl_devices.AFFINITY] == "0"
