"""Tensor maps: what the driver is asked for is within its documented limits, and what the emulation reads."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvgpu.runtime import Block, Meter
from kvgpu.runtimes import tensor_map
from kvgpu.runtimes.tensor_map import Matrix

SOURCE = Path(__file__).parents[2] / "support" / "device" / "fake_driver.c"
ADDRESS = 0x7F00_0000_0000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """NVIDIA's driver, but for what it is: see `fake_driver.c`."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    made = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", SOURCE, "-o", made], check=True)
    return ctypes.CDLL(str(made))


def matrix(rows: int, columns: int, at: int = 0) -> Matrix:
    return Matrix(Block(object(), at + rows * columns * 2 + 2, Meter()), at, columns)


MATRICES = [(1, 64, 0), (40, 128, 32), (1 << 20, 192, 16), (61 << 17, 576, 1 << 34), ((1 << 32), 64, 0)]


@pytest.mark.parametrize("sizes", MATRICES)
def test_the_driver_is_asked_for_what_the_emulation_reads(library: Any, sizes: tuple[int, int, int]) -> None:
    asked, between = matrix(*sizes), []
    for n in range(20):  # so that maps lie at many places
        between.append(ctypes.create_string_buffer(16 * n + 1))
        assert tensor_map.encoded(library, asked, ADDRESS) == tensor_map.emulated(asked, ADDRESS)


WRONG: dict[str, Callable[[Any], None]] = {
    "an address that is not aligned": lambda m: m.setattr(f"{__name__}.ADDRESS", ADDRESS + 8),
    "a line of a box wider than its swizzle": lambda m: m.setattr(tensor_map, "BOX_COLUMNS", 72),
    "a line of no multiple of 16 bytes": lambda m: m.setattr(tensor_map, "BOX_COLUMNS", 60),
    "a box of too many rows": lambda m: m.setattr(tensor_map, "BOX_ROWS", 257),
    "rows that overlap": lambda m: m.setattr(Matrix, "pitch", 64),
    "a pitch of no multiple of 16 bytes": lambda m: m.setattr(Matrix, "pitch", 136),
    "no rows": lambda m: m.setattr(Matrix, "rows", 0),
    "more rows than there may be": lambda m: m.setattr(Matrix, "rows", (1 << 32) + 1),
    "another kind of element": lambda m: m.setattr(tensor_map, "UINT16", 13),
    "numbers beyond instead of zeros": lambda m: m.setattr(tensor_map, "NO_FILL", 1),
    "a swizzle that there is not": lambda m: m.setattr(tensor_map, "SWIZZLE_128", 9),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_the_driver_refuses_is_told(library: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WRONG[what](monkeypatch)
    with pytest.raises(RuntimeError, match="the driver makes no tensor map: status 1"):
        tensor_map.encoded(library, matrix(40, 128), ADDRESS)


def test_another_swizzle_is_another_map(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = matrix(40, 128)
    monkeypatch.setattr(tensor_map, "BOX_COLUMNS", 32)
    monkeypatch.setattr(tensor_map, "SWIZZLE_128", 2)
    narrow = tensor_map.encoded(library, asked, ADDRESS)
    monkeypatch.undo()
    assert narrow != tensor_map.encoded(library, asked, ADDRESS)


NAMES = {
    "CUtensorMapDataType": "CU_TENSOR_MAP_DATA_TYPE_UINT16",
    "CUtensorMapInterleave": "CU_TENSOR_MAP_INTERLEAVE_NONE",
    "CUtensorMapSwizzle": "CU_TENSOR_MAP_SWIZZLE_128B",
    "CUtensorMapL2promotion": "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
    "CUtensorMapFloatOOBfill": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
}


def test_the_numbers_are_those_of_the_driver() -> None:
    """As NVIDIA's own package has them."""
    driver = pytest.importorskip("cuda.bindings.driver", reason="`nox -s cubins` installs it and runs this")
    of_it = [int(getattr(getattr(driver, kind), name)) for kind, name in NAMES.items()]
    ours = tensor_map.UINT16, tensor_map.NO_INTERLEAVE, tensor_map.SWIZZLE_128
    assert of_it == [*ours, tensor_map.PROMOTION_128, tensor_map.NO_FILL]
