"""Asks Linux for huge pages for large memory, as numpy does for its own arrays.

The rows of the heads lie on different pages, so an append or a read of many heads needs the addresses of as many
pages. With pages of 2 MiB the processor has most of them at hand, and new memory is made in fewer steps.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

LARGE = 4 << 20
"""Least bytes that are worth it, as in numpy."""


def ask(address: int, nbytes: int) -> None:
    """Ask for huge pages for the whole pages in this memory. Where the system has none, nothing happens."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    begin, end = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, (address + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if advice is None or not sys.platform.startswith("linux") or end <= begin:
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    madvise(begin, end - begin, advice)
