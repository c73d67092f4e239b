"""The adapter under measurement: opens its caches, and places rows on its device if it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from kvprofile.case import Case
from kvprofile.random_rows import noise, turns
from kvspec.geometry import DTYPES, Config


@dataclass
class Subject:
    """An adapter and a case; `memory` is how many bytes of rows to rotate through, so that device caches cannot
    hold them. `opened` and `given` count the caches and the bytes of arrays that this came to."""

    adapter: Any
    case: Case
    config: Config
    memory: int
    opened: int = 0
    given: int = 0

    def open(self, kind: str, config: Config | None = None, contexts: int = 1) -> Any:
        """Open a fresh cache, which will hold this many contexts."""
        self.opened += contexts
        return self.adapter.open(kind, config or self.config)

    def rotates(self, each: int) -> int:
        """Count the bytes of rows that pass by before any comes back, where `each` cache has this many."""
        return self.opened * each + self.given

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
        made = [noise(shape, dtype or self.config.dtype, first + i) for i, shape in enumerate(shapes)]
        self.given += sum(array.nbytes for array in made)
        return self.placed(*made)

    def rows(self, n: int, turn: int = 0) -> tuple[Any, ...]:
        """Make n random rows for `append`."""
        return self.arrays(self.shapes(n), turn)

    def several(self, shapes: Sequence[tuple[int, ...]], dtype: str = "") -> list[tuple[Any, ...]]:
        """Make random arrays of these shapes to rotate through."""
        nbytes = sum(map(prod, shapes)) * DTYPES[dtype or self.config.dtype].itemsize
        return [self.arrays(shapes, i, dtype) for i in range(turns(self.memory, nbytes, 64))]
