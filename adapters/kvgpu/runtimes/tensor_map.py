"""Tensor maps describe a matrix to a GPU of compute capability 9.0, which then copies boxes of it by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kvgpu.runtime import Block

BOX_ROWS, BOX_COLUMNS, ITEM = 16, 64, 2
"""Rows and columns of a box, and bytes of an element: a box has lines of 128 bytes."""

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


def encoded(driver: Any, matrix: Matrix, address: int) -> TensorMap:
    """Have NVIDIA's driver make a map, by the module `cuda.bindings.driver`. Lines of a box change places as the
    swizzle of 128 bytes says, and what is beyond the matrix is zeros. Raises RuntimeError if the driver refuses."""
    number, wide = driver.cuuint32_t, driver.cuuint64_t
    status, made = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        2,
        address + matrix.at,
        [wide(matrix.columns), wide(matrix.rows)],
        [wide(matrix.pitch)],
        [number(BOX_COLUMNS), number(BOX_ROWS)],
        [number(1), number(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if int(status) != 0:
        raise RuntimeError(f"the driver makes no tensor map: {status.name}")
    return TensorMap(tuple(n - (n >> 63 << 64) for n in map(int, made.opaque)))  # as signed numbers
