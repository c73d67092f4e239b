"""Reads a kernel's machine code in a cubin: counts its instructions, and those of its main loop.

An instruction has 16 bytes since sm_70; the lowest 12 bits say which it is. The targets of branches were compared
with those that nvdisasm 13 shows for sm_80, sm_90, sm_100 and sm_120.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

BYTES = 16
"""Bytes of an instruction."""

BRANCHES, PRODUCT, COPY = (0x947, 0x547), 0x23C, 0xFAE
"""Instructions by their number: BRA and BRA.U, HMMA, and LDGSTS, which copies to shared memory without waiting."""


class Loop(NamedTuple):
    """A loop: how many instructions it has, and how many of them are products of matrices and asynchronous copies.
    The inner loops that only copy have `copying` of the instructions and `copied` of the copies."""

    instructions: int
    products: int
    copies: int
    copying: int = 0
    copied: int = 0


def section(cubin: bytes, name: str) -> bytes:
    """Give the content of a section of an ELF file. Raises KeyError if there is none."""
    (at,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, at + i * size) for i in range(count)]
    for header in headers:
        begins = headers[names][4] + header[0]
        if cubin[begins : cubin.index(b"\0", begins)].decode() == name:
            return cubin[header[4] : header[4] + header[5]]
    raise KeyError(name)


def instructions(cubin: bytes, kernel: str) -> int:
    """Count the instructions of a kernel."""
    return len(section(cubin, f".text.{kernel}")) // BYTES


def main_loop(cubin: bytes, kernel: str, generation: int) -> Loop:
    """Give the smallest loop with products and copies in it, of a kernel for sm_`generation`. Raises ValueError if
    there is none."""
    code = list(struct.iter_unpack("<QQ", section(cubin, f".text.{kernel}")))
    found = {span: _loop(code, *span) for span in _spans(code, generation)}
    whole = [(loop, span) for span, loop in found.items() if loop.products and loop.copies]
    if not whole:
        raise ValueError(f"{kernel} has no loop with products and copies")
    main, (begin, end) = min(whole)
    inner = [
        loop for (b, e), loop in found.items() if begin <= b and e <= end and not loop.products and loop.copies
    ]
    return main._replace(
        copying=sum(loop.instructions for loop in inner), copied=sum(loop.copies for loop in inner)
    )


def _spans(code: list[tuple[int, int]], generation: int) -> Iterator[tuple[int, int]]:
    """Give where each branch that goes back comes from, and where it goes."""
    for i, (low, high) in enumerate(code):
        if low & 0xFFF in BRANCHES and (back := _distance(low, high, generation)) < 0:
            yield i + 1 + back, i + 1


def _distance(low: int, high: int, generation: int) -> int:
    """Give the instructions that a branch skips, counted from the one behind it. The number has 48 bits and is in
    steps of 4 bytes; since sm_90 its lowest 8 bits stand apart."""
    steps = low >> 34 | (high & 0x3FFFF) << 30
    signed = steps - (1 << 48) if steps >> 47 else steps
    return (signed if generation < 90 else signed * 256 + (low >> 16 & 0xFF)) * 4 // BYTES


def _loop(code: list[tuple[int, int]], begin: int, end: int) -> Loop:
    count = Counter(low & 0xFFF for low, _ in code[begin:end])
    return Loop(end - begin, count[PRODUCT], count[COPY])
