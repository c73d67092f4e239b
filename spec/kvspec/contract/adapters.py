"""The adapter's own methods: it describes itself, opens caches, plans memory and counts traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kvspec.geometry import Array, Config


class Adapter(Protocol):
    """The entry point of an engine."""

    def describe(self) -> Mapping[str, Any]:
        """Say what the adapter is and claims, as JSON: see `Description`."""

    def open(self, kind: str, config: Config) -> Any:
        """Open a fresh cache. Raises Refused for a config that no cache may accept, Unsupported beyond the declared
        limits."""


class OwnArrays(Protocol):
    """Methods of an adapter whose engine has arrays of its own. Rows and queries are then handed in as the
    engine's arrays, and what it hands out is kept as it is. So the suite can tell who owns them. Both methods may
    give views."""

    def to_engine(self, array: Array) -> Any:
        """Make an array of the engine."""

    def from_engine(self, array: Any) -> Array:
        """Give the elements of an array of the engine."""


class Asynchronous(Protocol):
    """Method of an adapter whose calls return before their work is done."""

    def synchronise(self) -> None:
        """Wait until all is done. It is called before anything is observed (lengths, rows, masks, the elements of
        what was handed out) and never else: within a run not before its last operation."""


class Planning(Protocol):
    """Methods that the chapter `mem` adds to caches and stores."""

    def plan(self, n: int) -> tuple[int, int]:
        """Give the bytes of rows allocated after an append of n rows, and the peak during it."""

    def held(self) -> int:
        """Give the bytes of rows allocated now."""


class Fitting(Protocol):
    """Methods that the chapter `mem` adds to an adapter."""

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        """Give how many sequences of this config fit into `free` bytes, and whether even one fits."""


class Metered(Protocol):
    """Methods that the chapter `residency` adds to an adapter."""

    def meter(self) -> Mapping[str, int]:
        """Give the counts so far: see `METERED`."""

    def place(self, *arrays: Array) -> tuple[Any, ...]:
        """Copy arrays to the device, to be passed to any method that takes rows, queries or an output."""

    def fetch(self, placed: Any) -> Array:
        """Read an array on the device; the meter counts this as a download."""
