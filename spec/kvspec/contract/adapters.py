"""What an adapter itself has: it opens caches, plans, counts, and says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kvspec.geometry import Array, Config


class Adapter(Protocol):
    """What stands for an engine."""

    def describe(self) -> Mapping[str, Any]:
        """What it is and claims, as JSON: see `Description`."""

    def open(self, kind: str, config: Config) -> Any:
        """A fresh cache. Raises Refused for a config no cache may have, Unsupported beyond what is declared."""


class Planning(Protocol):
    """What the chapter `mem` adds to what is opened."""

    def plan(self, n: int) -> tuple[int, int]:
        """Bytes of rows allocated after an append of n rows, and at most at any moment of it."""

    def held(self) -> int:
        """Bytes of rows allocated now."""


class Fitting(Protocol):
    """What the chapter `mem` adds to an adapter."""

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        """How many sequences of this config fit into `free` bytes, and whether even one does."""


class Metered(Protocol):
    """What the chapter `residency` adds to an adapter."""

    def meter(self) -> Mapping[str, int]:
        """What was counted so far: see `METERED`."""

    def place(self, *arrays: Array) -> tuple[Any, ...]:
        """Copies on the device, to be handed to whatever takes rows, queries or an output."""

    def fetch(self, placed: Any) -> Array:
        """What an array on the device holds; counted as any download is."""
