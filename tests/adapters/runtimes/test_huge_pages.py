"""Large buffers on a CPU ask for huge pages once, before they are written; nothing else does."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import pytest

from kvgpu.runtimes import huge_pages, opencl_devices
from kvgpu.runtimes.huge_pages import LARGE
from kvgpu.runtimes.opencl import OpenCLRuntime


def asked_for(address: int) -> bool:
    """Whether Linux was asked for huge pages at an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head:
            begin, end = (int(part, 16) for part in head.split("-"))
            inside = begin <= address < end
        elif inside and head == "VmFlags:":
            return "hg" in line.split()
    return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="huge pages are asked for on Linux")
def test_whole_pages_are_asked_for_and_no_others() -> None:
    memory = mmap.mmap(-1, 8 * mmap.PAGESIZE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    huge_pages.ask(begin + mmap.PAGESIZE + 1, 3 * mmap.PAGESIZE)
    asked = [asked_for(begin + i * mmap.PAGESIZE) for i in range(8)]
    assert asked == [False, False, True, True, False, False, False, False]


@pytest.mark.parametrize("nbytes", [0, 1, mmap.PAGESIZE])
def test_where_there_is_no_whole_page_nothing_is_asked(nbytes: int) -> None:
    huge_pages.ask(1, nbytes)


def test_a_large_buffer_asks_once_also_where_the_pool_gives_it_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(huge_pages, "ask", lambda address, nbytes: asked.append(nbytes))
    runtime = OpenCLRuntime()
    for _ in range(2):
        runtime.allocate(LARGE).release()
        runtime.allocate(LARGE - 1).release()
    on_a_cpu = runtime._choice.taken.kind in opencl_devices.CPUS
    assert asked == [LARGE] * on_a_cpu and runtime.meter.synchronisations == 0
