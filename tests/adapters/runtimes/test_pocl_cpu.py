"""PoCL is told which processor it runs on, where its compiler does not know it; no other memory is written."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvgpu.runtimes import pocl_cpu
from kvgpu.runtimes.pocl_cpu import DEVICE_BYTES, PROCESSORS, TARGET, UNKNOWN

NEW = (
    "processor\t: 0\nflags\t\t: fpu sse2 "
    + " ".join(sorted(PROCESSORS["skylake-avx512"]))
    + " avx512_bf16\nbugs\t: x\n"
)


class Device:
    """Memory as a device of PoCL has it: texts by pointers, and numbers that are no addresses."""

    def __init__(self, *texts: bytes) -> None:
        self.texts = [ctypes.create_string_buffer(text) for text in texts]
        pointers = [ctypes.addressof(text) for text in self.texts]
        words = [3, 1 << 63, 0, *pointers]
        self.memory = ctypes.create_string_buffer(struct.pack(f"{len(words)}Q", *words), DEVICE_BYTES)
        self.int_ptr = ctypes.addressof(self.memory)

    @property
    def names(self) -> list[bytes]:
        """The texts that its pointers point at now."""
        pointers = struct.unpack_from(f"{len(self.texts)}Q", self.memory, 24)
        return [ctypes.string_at(pointer) for pointer in pointers]


@pytest.fixture(autouse=True)
def cpu_info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that is newer than the compiler."""
    (tmp_path / "cpuinfo").write_text(NEW)
    monkeypatch.setattr(pocl_cpu, "CPU_INFO", tmp_path / "cpuinfo")


def test_the_name_of_the_processor_is_replaced_and_nothing_else() -> None:
    devices = [Device(b"pthread", TARGET, UNKNOWN, UNKNOWN) for _ in range(2)]
    before = [device.memory.raw for device in devices]
    assert pocl_cpu.tell(devices) == "skylake-avx512"
    for device, was in zip(devices, before, strict=True):
        assert device.names == [b"pthread", TARGET, b"skylake-avx512", UNKNOWN]
        assert device.memory.raw[:40] == was[:40] and device.memory.raw[48:] == was[48:]


@pytest.mark.parametrize(
    "other",
    [
        Device(TARGET, b"znver3"),
        Device(b"aarch64-unknown-linux-gnu", UNKNOWN),
        Device(UNKNOWN, TARGET),
        Device(TARGET + b"x", UNKNOWN),
        Device(TARGET, UNKNOWN + b"x"),
        Device(),
        SimpleNamespace(int_ptr=0),
        SimpleNamespace(int_ptr=(1 << 47) - 4096),
    ],
    ids=[
        "it is known",
        "another target",
        "another order",
        "a longer target",
        "a longer name",
        "none",
        "null",
        "no memory",
    ],
)
def test_where_one_is_another_sort_of_device_none_is_changed(other: Any) -> None:
    device = Device(TARGET, UNKNOWN)
    before = [d.memory.raw for d in (device, other) if isinstance(d, Device)]
    assert pocl_cpu.tell([device, other]) == ""
    assert [d.memory.raw for d in (device, other) if isinstance(d, Device)] == before


def test_without_a_map_of_memory_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pocl_cpu, "MAPS", tmp_path / "maps")
    assert pocl_cpu.tell([SimpleNamespace(int_ptr=1)]) == ""


@pytest.mark.parametrize(
    ("cpu_info", "name"),
    [
        (NEW, "skylake-avx512"),
        (NEW.replace("avx512vl", ""), "haswell"),
        (NEW.replace(" f16c", ""), "x86-64"),
        ("flags : sse2\n", "x86-64"),
        ("", "x86-64"),
    ],
    ids=["new", "no avx512vl", "no f16c", "old", "nothing told"],
)
def test_the_processor_can_do_no_more_than_this_one(cpu_info: str, name: str) -> None:
    assert pocl_cpu.processor(cpu_info) == name


def test_a_processor_is_wide_if_its_compiler_has_registers_of_16_floats() -> None:
    assert pocl_cpu.wide()
    pocl_cpu.CPU_INFO.write_text(NEW.replace("avx512vl", ""))
    assert not pocl_cpu.wide()


def test_a_processor_of_which_nothing_is_told_is_not_wide() -> None:
    pocl_cpu.CPU_INFO.unlink()
    assert not pocl_cpu.wide()
