"""Tells the PoCL that pip brings which processor it runs on, where that is newer than its compiler.

PoCL 3.0 compiles for the processor that LLVM 14 finds. LLVM calls one that it does not know `generic`, and then its
compiler refuses that name (`unknown target CPU 'generic'`). No option and no environment variable changes it. So
the name is replaced where PoCL keeps it: in the device, behind the name of the target. Nothing is written unless
both are found there.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TARGET, UNKNOWN = b"x86_64-unknown-linux-gnu", b"generic"
"""What a device says of its target and of its processor, in neighbouring pointers."""

DEVICE_BYTES, POINTER = 1024, 8
"""Bytes of a device of PoCL 3.0, and of a pointer."""

AVX2 = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2", "movbe", "abm"})
WIDE = "skylake-avx512"
PROCESSORS = {
    WIDE: AVX2 | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "adx", "aes", "pclmulqdq"},
    "haswell": AVX2,
    "x86-64": frozenset[str](),
}
"""Names that LLVM 14 knows, the best first, and what Linux says of such a processor."""

CPU_INFO, MAPS = Path("/proc/cpuinfo"), Path("/proc/self/maps")


def tell(devices: Sequence[Any]) -> str:
    """Name a processor to devices of PyOpenCL that do not know theirs: one that can do no more than it. Return the
    name; empty, and nothing is changed, if one of them is another sort of device."""
    if not MAPS.exists():
        return ""
    readable = _readable()
    places = [_place(device.int_ptr, readable) for device in devices]
    if not all(places):
        return ""
    name = processor(CPU_INFO.read_text())
    for place in places:
        ctypes.c_void_p.from_address(place).value = _allocated(name)
    return name


def processor(cpu_info: str) -> str:
    """Choose the best processor that LLVM 14 knows, from the text of /proc/cpuinfo."""
    found = re.search(r"^flags\s*:(.*)$", cpu_info, re.MULTILINE)
    able = set(found[1].split()) if found else set()
    return next(name for name, needs in PROCESSORS.items() if needs <= able)


def wide() -> bool:
    """Tell whether this processor has registers of 16 floats, which LLVM 14 uses."""
    return CPU_INFO.exists() and processor(CPU_INFO.read_text()) == WIDE


def _allocated(name: str) -> int:
    """Allocate a text as PoCL does, which may free it."""
    strdup = ctypes.CDLL(None).strdup
    strdup.restype, strdup.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    return int(strdup(name.encode()))


def _readable() -> list[range]:
    """List the memory that this process may read."""
    lines = re.findall(r"^(\w+)-(\w+) r", MAPS.read_text(), re.MULTILINE)
    return [range(int(begin, 16), int(end, 16)) for begin, end in lines]


def _place(device: int, readable: list[range]) -> int:
    """Find the address of the pointer to the processor's name; 0 if there is none."""
    for at in range(device, device + DEVICE_BYTES - POINTER, POINTER):
        if _points_at(TARGET, at, readable) and _points_at(UNKNOWN, at + POINTER, readable):
            return at + POINTER
    return 0


def _points_at(text: bytes, at: int, readable: list[range]) -> bool:
    """Tell whether there is a pointer at an address, to this text and its end."""
    begin = int.from_bytes(_bytes(at, POINTER, readable), "little")
    return _bytes(begin, len(text) + 1, readable) == text + b"\0"


def _bytes(at: int, count: int, readable: list[range]) -> bytes:
    """Read memory; nothing where there is none."""
    there = any(at in part and at + count - 1 in part for part in readable)
    return ctypes.string_at(at, count) if there else b""
