"""The adapter under measurement: opens its caches, and places rows on its device if it can."""

from __future__ import annotations

from typing import Any, NamedTuple

from kvconform.profiling.case import Case
from kvconform.profiling.random_rows import noise, turns
from kvspec.geometry import Config


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

    def rows(self, n: int, turn: int = 0, config: Config | None = None) -> tuple[Any, ...]:
        """Make n random rows for `append`."""
        config = self.config if config is None else config
        shapes = [config.shape(kind, n) for kind in "kv"]
        return self.placed(*(noise(shape, config.dtype, 2 * turn + i) for i, shape in enumerate(shapes)))

    def several(self, n: int, config: Config | None = None) -> list[tuple[Any, ...]]:
        """Make arrays of rows to rotate through."""
        config = self.config if config is None else config
        return [self.rows(n, i, config) for i in range(turns(self.memory, n * config.row_bytes, 64))]
