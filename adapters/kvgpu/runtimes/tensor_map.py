"""Tensor maps describe a matrix to a GPU of compute capability 9.0, which then copies boxes of it by itself."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

from kvgpu.runtime import Block

BOX_ROWS, BOX_COLUMNS, ITEM = 16, 64, 2
"""Rows and columns of a box, and bytes of an element: a box has lines of 128 bytes."""

CELLS, ALIGNED = 16, 128
"""Cells of 64 bits of a map, and the bytes to which `cuda.h` of CUDA 13 aligns it; the driver asks for 64."""

UINT16, NO_INTERLEAVE, SWIZZLE_128, PROMOTION_128, NO_FILL = 1, 0, 3, 2, 0
"""What `cuda.h` has for elements of 16 bits, for none, swizzles and reads of 128 bytes, and for zeros beyond."""

MAGIC = 0x6B7674656E736F72
"""What a map of the emulation begins with: see `shim/hopper.h`."""


class TensorMap(NamedTuple):
    """An argument of a kernel: a map as 16 cells of 64 bits."""

    cells: tuple[int, ...]


def flat(args: tuple[Block | int | TensorMap, ...]) -> Iterator[Block | int]:
    """Give the arguments of a kernel, each cell of a map as one."""
    for a in args:
        if isinstance(a, TensorMap):
            yield from a.cells
        else:
            yield a


class Matrix(NamedTuple):
    """Rows of 16-bit elements in a block, from byte `at` on to its end, as many as are whole."""

    block: Block
    at: int
    columns: int

    @property
    def pitch(self) -> int:
        """Give the bytes from one row to the next."""
        return self.columns * ITEM

    @property
    def rows(self) -> int:
        """Count the rows."""
        return (self.block.nbytes - self.at) // self.pitch


def emulated(matrix: Matrix, address: int) -> TensorMap:
    """Make the map that the emulation reads; `address` is that of the block."""
    sizes = MAGIC, address + matrix.at, matrix.columns, matrix.rows, matrix.pitch
    return TensorMap((*sizes, BOX_COLUMNS, BOX_ROWS, BOX_COLUMNS * ITEM, *(0,) * 8))


def driver() -> Any:
    """Load NVIDIA's driver, which a process that uses a GPU has loaded before."""
    return ctypes.CDLL("libcuda.so.1")


def encoded(driver: Any, matrix: Matrix, address: int) -> TensorMap:
    """Have NVIDIA's driver make a map. Lines of a box change places as the swizzle of 128 bytes says, and what is
    beyond the matrix is zeros. Raises RuntimeError if the driver refuses.

    It is called by ctypes, because `cuda.bindings.driver` hands it a map whose address is a multiple of 16 only
    (github.com/NVIDIA/cuda-python/pull/1692), and the driver documents that it takes multiples of 64.
    """
    room = (ctypes.c_int64 * (CELLS + ALIGNED // 8))()
    made = (ctypes.c_int64 * CELLS).from_address(-(-ctypes.addressof(room) // ALIGNED) * ALIGNED)
    sizes = _numbers(ctypes.c_uint64, matrix.columns, matrix.rows), _numbers(ctypes.c_uint64, matrix.pitch)
    box = _numbers(ctypes.c_uint32, BOX_COLUMNS, BOX_ROWS), _numbers(ctypes.c_uint32, 1, 1)
    first = ctypes.c_void_p(address + matrix.at)
    kinds = NO_INTERLEAVE, SWIZZLE_128, PROMOTION_128, NO_FILL
    if status := driver.cuTensorMapEncodeTiled(made, UINT16, 2, first, *sizes, *box, *kinds):
        raise RuntimeError(f"the driver makes no tensor map: status {status}")
    return TensorMap(tuple(made))


def _numbers(kind: Any, *numbers: int) -> Any:
    return (kind * len(numbers))(*numbers)
