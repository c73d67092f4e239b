"""Engines whose appends launch more than once: for keys and for values, or once more than that."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.caches.growing import Growing
from kvref.memory import meter
from kvspec.geometry import Array


class Launching(Growing):
    """Counts launches where the reference, which copies rows itself, has none."""

    launches = 2

    def append(self, keys: Array, values: Array) -> None:
        super().append(keys, values)
        meter.meter.launches += self.launches if keys.shape[2] else 0


class LaunchingMore(Launching):
    launches = 3


class Undeclared(Reference):
    """Launches for keys and for values, and does not say so."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": Launching}
    residency: ClassVar[dict[str, str]] = {"level": "visible"}

    def describe(self) -> dict[str, Any]:
        said = super().describe()
        return {**said, "chapters": {**said["chapters"], "residency": self.residency}}


class Declared(Undeclared):
    """The same, which says so."""

    residency: ClassVar[dict[str, str]] = {"level": "visible", "launches": "each"}


class DeclaredAndMore(Declared):
    """Declares two launches and makes three."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": LaunchingMore}
