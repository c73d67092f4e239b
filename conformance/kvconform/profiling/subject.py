"""The adapter under measurement: opens its caches, and places rows on its device if it can."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from kvconform.profiling.case import Case
from kvconform.profiling.random_rows import noise, turns
from kvspec.geometry import DTYPES, Config


class Subject(NamedTuple):
    """An adapter and a case; `memory` is how many bytes of rows to rotate through, so that device caches cannot
    hold them."""

    adapter: Any
    case: Case
    config: Config
    memory: int

    def open(self, kind: str) -> Any:
        """Open a fresh cache."""
        return self.adapter.open(kind, self.config)

    def turns(self, rows: int, most: int = 256) -> int:
        """Count the arrays of this many rows to rotate through."""
        return turns(self.memory, rows * self.config.row_bytes, most)

    def placed(self, *arrays: Any) -> tuple[Any, ...]:
        """Copy arrays to the device if the adapter takes such; else keep them on the host."""
        place = getattr(self.adapter, "place", None)
        return arrays if place is None else tuple(place(*arrays))

    def shapes(self, n: int, *layers: int) -> list[tuple[int, ...]]:
        """Give the shapes of n rows, keys and values: `[B, H, n, dim]`, or `[layers, B, H, n, dim]`."""
        return [(*layers, *self.config.shape(kind, n)) for kind in "kv"]

    def arrays(self, shapes: Sequence[tuple[int, ...]], turn: int = 0, dtype: str = "") -> tuple[Any, ...]:
        """Make random arrays; another `turn` gives others."""
        first = turn * len(shapes)
        return self.placed(*(noise(shape, dtype or self.config.dtype, first + i) for i, shape in enumerate(shapes)))

    def rows(self, n: int, turn: int = 0) -> tuple[Any, ...]:
        """Make n random rows for `append`."""
        return self.arrays(self.shapes(n), turn)

    def several(self, shapes: Sequence[tuple[int, ...]], dtype: str = "") -> list[tuple[Any, ...]]:
        """Make random arrays of these shapes to rotate through."""
        nbytes = sum(map(prod, shapes)) * DTYPES[dtype or self.config.dtype].itemsize
        return [self.arrays(shapes, i, dtype) for i in range(turns(self.memory, nbytes, 64))]
