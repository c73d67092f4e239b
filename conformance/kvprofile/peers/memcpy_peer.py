"""memcpy: copies as many bytes as an operation writes, in one piece. That is less work: it has no rows to place."""

from __future__ import annotations

import ctypes

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.random_rows import noise


class Memcpy:
    """The C library's memmove, on one thread."""

    name = "memcpy"
    words = "the C library's memmove, of as many bytes in one piece, on one thread"

    def job(self, case: Case, memory: int) -> Job | None:
        """Copy the bytes that an operation writes, by one memmove from one half of the memory to the other."""
        from kvprofile.workloads import OPERATIONS

        moved = OPERATIONS[case.operation].traffic(case)
        if moved.limit not in ("copy", "download") or moved.read != moved.written:
            return None
        size, places = moved.written, max(1, memory // (2 * moved.written))
        source, target = (noise((places * size // 4,), "f32", turn) for turn in range(2))

        def do(i: int) -> None:
            at = i % places * size
            ctypes.memmove(target.ctypes.data + at, source.ctypes.data + at, min(size, source.nbytes - at))

        return Job(do)

    def wait(self) -> None:
        """Do nothing: memmove is done when it returns."""
