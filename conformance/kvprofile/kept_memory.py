"""Keeps freed memory in the process while a profile measures.

The first write to memory from the system takes several times as long as the next. Whether an array comes from
there or is one that was freed, glibc decides by what was freed before: the same view took 1.1 ms or 5. So nothing
goes back to the system meanwhile, neither what the adapter frees nor what a peer does.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

MAPPINGS, MOST_MAPPINGS = -4, 65536
"""glibc's M_MMAP_MAX, how many arrays may be mappings of their own, and its default."""

TRIM, LEAST_TRIM = -1, 128 << 10
"""glibc's M_TRIM_THRESHOLD, how many free bytes go back to the system, and its default."""

NEVER = -1


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is freed; afterwards give it back. Does nothing where the C library is not glibc."""
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(MAPPINGS, 0)
    libc.mallopt(TRIM, NEVER)
    try:
        yield
    finally:
        libc.mallopt(MAPPINGS, MOST_MAPPINGS)
        libc.mallopt(TRIM, LEAST_TRIM)
        libc.malloc_trim(0)
