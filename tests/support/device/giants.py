"""Reserved memory of billions of words, of which a machine gives only the pages that are touched."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from kvspec.geometry import Array

NORESERVE, SMALL_PAGES = 0x4000, 15
"""Linux: MAP_NORESERVE, and the advice MADV_NOHUGEPAGE, so that a byte that is touched takes one small page."""


class Giant:
    """Memory that a block of `CudaCPURuntime` may stand for; `before` bytes in front are reserved too, so that an
    index that became negative is found and does not end the process. Raises OSError where there is no room."""

    def __init__(self, nbytes: int, before: int) -> None:
        self._before, flags = before, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
        self._libc = ctypes.CDLL(None, use_errno=True)
        whole = np.frombuffer(mmap.mmap(-1, before + nbytes, flags=flags), np.uint8)
        self._whole, self._size = ctypes.c_void_p(whole.ctypes.data), ctypes.c_size_t(len(whole))
        self._demand(self._libc.madvise(self._whole, self._size, SMALL_PAGES))
        self.bytes: Array = whole[before:]
        self.address = self.bytes.ctypes.data

    def touched(self) -> set[int]:
        """The pages that were touched, counted from the first byte."""
        pages = np.zeros(-(-self._size.value // mmap.PAGESIZE), np.uint8)
        self._demand(self._libc.mincore(self._whole, self._size, pages.ctypes.data_as(ctypes.c_void_p)))
        return {int(page) - self._before // mmap.PAGESIZE for page in np.flatnonzero(pages & 1)}

    def _demand(self, status: int) -> None:
        if status:
            raise OSError(ctypes.get_errno(), "the memory that was reserved cannot be asked about")


def pages_of(begin: int, nbytes: int) -> set[int]:
    """The pages in which these bytes lie."""
    return set(range(begin // mmap.PAGESIZE, (begin + nbytes - 1) // mmap.PAGESIZE + 1))
