"""NVRTC, where it is installed: every kernel is in every cubin, and what does not compile is said by line."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kvgpu import kernels
from kvgpu.runtimes.fast import hopper_prefill, warp_attention, warp_kernels, warp_table, warp_wide
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.nvidia import nvrtc, sass
from kvspec.errors import CannotRun

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 28 registers, used 0 barriers
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
ptxas         .     40 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 504 bytes cmem[0]
"""


@pytest.fixture
def installed() -> None:
    try:
        nvrtc.binding()
    except CannotRun as e:
        pytest.skip(f"{e}; `nox -s cubins` installs it and runs this")


def test_registers_and_spills_are_read_from_the_log() -> None:
    assert nvrtc.usage(LOG) == {"one": nvrtc.Usage(28, 0), "two": nvrtc.Usage(255, 28)}


def test_a_kernel_is_there_only_under_its_whole_name() -> None:
    cubin = nvrtc.Cubin("sm_90", b"\x7fELF\0.text.move16\0move1\0.symtab\0", {}, 0.0)
    assert cubin.lacks(["move1", "move16"]) == ["move1"]


def test_a_table_has_a_line_for_each_architecture() -> None:
    found = {"one": nvrtc.Usage(28, 0), "two": nvrtc.Usage(255, 28)}
    table = nvrtc.table([nvrtc.Cubin("sm_90", b".text.one\0", found, 0.25)], ["one", "two"]).splitlines()
    assert table[2].split() == ["sm_90", "1", "of", "2", "10", "0.25", "255", "28"]


def test_a_missing_kernel_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernels, "KERNELS", {"prepare": 1, "other": 2, "third": 1})
    monkeypatch.setattr(nvrtc, "compiled", lambda text, a: nvrtc.Cubin(a, b".text.prepare\0", {}, 0.0))
    assert nvrtc.main(["sm_90"]) == 1
    assert capsys.readouterr().err == "cubins: sm_90 lacks other, third\n"


def test_a_cubin_is_kept_until_something_that_it_depends_on_changes(tmp_path: Path, monkeypatch: Any) -> None:
    calls = []

    def compiled(text: str, architecture: str) -> nvrtc.Cubin:
        calls.append((text, architecture))
        return nvrtc.Cubin(architecture, f"{text} for {architecture}".encode(), {}, 0.0)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(nvrtc, "compiled", compiled)
    monkeypatch.setattr(nvrtc, "binding", lambda: None)
    monkeypatch.setattr(nvrtc, "version", lambda binding: "13.0")
    for _ in range(2):
        assert nvrtc.kept("one", "sm_90") == b"one for sm_90"
    nvrtc.kept("one", "sm_80")
    nvrtc.kept("two", "sm_90")
    monkeypatch.setattr(nvrtc, "version", lambda binding: "13.1")
    nvrtc.kept("one", "sm_90")
    monkeypatch.setattr(nvrtc, "OPTIONS", ("-G",))
    nvrtc.kept("one", "sm_90")
    assert calls == [("one", "sm_90"), ("one", "sm_80"), ("two", "sm_90"), ("one", "sm_90"), ("one", "sm_90")]
    assert len(list(tmp_path.glob("*/*.cubin"))) == 5


def test_no_nvrtc_is_status_4(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    assert nvrtc.main(["sm_90"]) == 4
    assert "NVRTC needs the package cuda-bindings" in capsys.readouterr().err


def test_a_binding_without_its_library_is_status_4(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    class Binding:
        @staticmethod
        def nvrtcVersion() -> None:
            raise RuntimeError('Failure finding "libnvrtc.so.13": No such file: libnvrtc.so.13')

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", Binding)
    assert nvrtc.main(["sm_90"]) == 4
    assert 'the library NVRTC is missing (Failure finding "libnvrtc.so.13")' in capsys.readouterr().err


@pytest.mark.usefixtures("installed")
def test_every_kernel_compiles_for_every_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    assert nvrtc.main([]) == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == list(nvrtc.ARCHITECTURES)
    assert said.err == ""


@pytest.mark.usefixtures("installed")
def test_the_registers_of_every_kernel_are_known() -> None:
    cubin = nvrtc.compiled(kernels.source("cuda"), "sm_90")
    assert set(cubin.usage) >= set(kernels.KERNELS)
    assert all(0 < u.registers < 256 for u in cubin.usage.values())


PUBLISHED = Path("reports/published/KERNELS.md")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_what_is_compiled_spills_nothing_and_is_what_is_published(architecture: str, capsys: Any) -> None:
    """Enough bytes are under way, and a tile takes fewer instructions than its bytes would take time: 8 KiB,
    at 20 bytes a clock, are 410 clocks of 4 schedulers. Where warps share a tile, each has a fourth of the work."""
    assert warp_table.main([architecture]) == 0
    published, lines = (
        [_cells(line) for line in text.splitlines() if f"| {architecture} " in line]
        for text in (PUBLISHED.read_text(), capsys.readouterr().out)
    )
    assert published == lines
    attention, steps = (lines[: len(warp_table.GEOMETRIES)], lines[len(warp_table.GEOMETRIES) :])
    assert [(dtype, spilled) for _, dtype, _, spilled in steps] == [(dtype, "0") for dtype in kernels.NUMBERS]
    for geometry, cells in zip(warp_table.GEOMETRIES, attention, strict=True):
        registers, spilled, shared, in_flight, _, each_tile, tile_bytes = map(int, cells[6:])
        assert registers <= 255 and spilled == 0 and shared <= 96 << 10
        clocks = tile_bytes / 20
        if warp_kernels.module(geometry) is warp_attention:
            assert in_flight >= 48 << 10 and each_tile < 4 * clocks
        elif warp_kernels.module(geometry) is warp_wide:
            assert in_flight >= 32 << 10 and each_tile < 1.1 * clocks


@pytest.mark.usefixtures("installed")
def test_the_kernel_for_one_generation_spills_nothing_and_is_what_is_published(capsys: Any) -> None:
    """Nor does the assembler put products one behind the other, which it says."""
    assert warp_table.main([warp_table.HOPPER_ONLY]) == 0
    named = f"| {warp_table.HOPPER_ONLY} "
    published, lines = (
        [_cells(line) for line in text.splitlines() if named in line]
        for text in (PUBLISHED.read_text(), capsys.readouterr().out)
    )
    assert published == lines and len(lines) == len(warp_table.HOPPER + warp_table.LATENT)
    assert all(cells[7] == "0" and int(cells[8]) <= 226 << 10 for cells in lines)
    text = hopper_prefill.source(warp_table.HOPPER[2], "attend", 264)
    assert nvrtc.architecture(text, "90") == warp_table.HOPPER_ONLY
    assert nvrtc.architecture(kernels.source("cuda"), "90") == "sm_90"


@pytest.mark.usefixtures("installed")
def test_the_products_of_a_group_are_not_put_one_behind_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[str] = []
    read = nvrtc.usage
    monkeypatch.setattr(nvrtc, "usage", lambda log: logs.append(log) or read(log))  # type: ignore[func-returns-value]
    for geometry in warp_table.HOPPER + warp_table.LATENT:
        warp_table.hopper_line(geometry)
    assert len(logs) == len(warp_table.HOPPER + warp_table.LATENT)
    assert not any("serialized" in log for log in logs), "products and other uses of their sums are mixed"
    assert all(" 0 bytes stack frame" in log for log in logs), "an array of a lane is in memory, not in registers"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


LOOP = """
extern "C" __global__ void one(float *x, int n) {
  for (int i = 0; i < n; ++i) x[i * i] = x[i] + 1.0f;
}
"""


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_a_loop_without_products_is_no_main_loop(architecture: str) -> None:
    cubin = nvrtc.compiled(LOOP, architecture).data
    assert 10 < sass.instructions(cubin, "one") < 1000
    with pytest.raises(ValueError, match="one has no loop with products and copies"):
        sass.main_loop(cubin, "one", int(architecture[3:]))
    with pytest.raises(KeyError):
        sass.instructions(cubin, "other")


@pytest.mark.usefixtures("installed")
def test_spilled_registers_are_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen columns of rows 256 wide are more than there are registers for."""
    monkeypatch.setattr(warp_attention, "_most_columns", lambda geometry: 16)
    monkeypatch.setattr(warp_table, "GEOMETRIES", (Geometry("bf16", 256, 256, 16, 1, "runs", 1),))
    assert warp_table.main(["sm_90"]) == 1


def test_a_table_needs_nvrtc(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    assert warp_table.main(["sm_90"]) == 4
    assert "NVRTC needs the package cuda-bindings" in capsys.readouterr().err


@pytest.mark.usefixtures("installed")
def test_an_error_is_reported_with_its_line(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    lines = kernels.source("cuda").splitlines()
    at = next(i for i, line in enumerate(lines) if "KERNEL prepare" in line) + 1
    lines.insert(at, "  no such thing;")
    monkeypatch.setattr(kernels, "source", lambda dialect, device: "\n".join(lines))
    assert nvrtc.main(["sm_90"]) == 1
    said = capsys.readouterr().err
    assert f"kernels.cu({at + 1}): error:" in said and "no such thing;" in said


@pytest.mark.usefixtures("installed")
def test_a_kernel_that_was_renamed_is_missed() -> None:
    text = kernels.source("cuda").replace("KERNEL prepare", "KERNEL prepared")
    assert nvrtc.compiled(text, "sm_90").lacks(kernels.KERNELS) == ["prepare"]


@pytest.mark.usefixtures("installed")
def test_an_architecture_it_does_not_know_is_status_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert nvrtc.main(["sm_1"]) == 4
    assert "is too old for 'sm_1', or too new" in capsys.readouterr().err
