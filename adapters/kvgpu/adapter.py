"""The adapter that any runtime makes: its caches, and its description of itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from kvgpu.caches import mem
from kvgpu.caches.bounded import Bounded
from kvgpu.caches.bucket import Bucket
from kvgpu.caches.copy import Buffer
from kvgpu.caches.draft import Round
from kvgpu.caches.growing import Growing
from kvgpu.caches.keyed import Keyed
from kvgpu.caches.layers import Layered
from kvgpu.caches.page import Pages
from kvgpu.caches.ragged import Ragged
from kvgpu.caches.ring import Ring
from kvgpu.caches.rope import rotate
from kvgpu.caches.sink import Sink
from kvgpu.caches.store import Store
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows, fetched, placed
from kvgpu.runtime import Runtime
from kvgpu.timing import Timing
from kvspec import SPEC_VERSION
from kvspec.contract import METERED, Cache, Rope
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config
from kvspec.operations.input_forms import INPUTS

BY_STORAGE = (
    *("mask", "snapshot", "mem", "residency", "copy", "store", "batch", "page"),
    *("ragged", "bucket", "draft", "attention", "rope", "sink", "forms", "questions"),
    *("parcels", "keyed"),
)
"""The chapters claimed at the level of storage, besides the three kinds that grow."""

CHECKS = "KVCONFORM_GPU_CHECKS"
"""Environment variable: with 1, guard bands are checked whenever rows are read."""


class Caches(Timing):
    """Opens caches on a runtime; they share its scratch memory."""

    kinds: ClassVar[dict[str, Any]] = {
        "growing": Growing,
        "ring": Ring,
        "bounded": Bounded,
        "copy": Buffer,
        "store": Store,
        "page": Pages,
        "ragged": Ragged,
        "bucket": Bucket,
        "sink": Sink,
        "layers": Layered,
        "keyed": Keyed,
    }

    def __init__(self, name: str, runtime: Runtime, checks: bool | None = None) -> None:
        self.name, self.runtime = name, runtime
        self.space = Workspace(runtime, os.environ.get(CHECKS) == "1" if checks is None else checks)

    def describe(self) -> dict[str, Any]:
        """What it is and claims. The ring allocates for its whole window at once, so its growth is free."""
        found = self.runtime.describe()
        return {
            "name": self.name,
            "version": SPEC_VERSION,
            "device": found["device"],
            "details": found["details"],
            "refusals": "cited",
            "inputs": list(INPUTS[1:]),
            "chapters": {
                "growing": {"level": "storage", "grows": "step"},
                "ring": {"level": "storage", "grows": "free"},
                "bounded": {"level": "storage", "grows": "step"},
                **dict.fromkeys(BY_STORAGE, "storage"),
                "layers": "visible",
            },
        }

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        """The largest batch of this config that fits, and whether even one sequence does."""
        return mem.fit(kind, config, free, reserve, most)

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """A round over these caches, None for a layer that has none."""
        return Round(caches, isolated)

    def meter(self) -> dict[str, int]:
        """Give the runtime's counts so far."""
        found = self.runtime.meter.reading()
        return {name: found[name] for name in METERED}

    def place(self, *arrays: Array) -> tuple[DeviceRows, ...]:
        """Copy arrays to the device; every method that takes rows takes the copies."""
        return placed(self.runtime, *arrays)

    def fetch(self, placed: DeviceRows) -> Array:
        """Copy such an array to the host."""
        return fetched(placed)

    def rotate(self, rows: Any, positions: Array, rope: Rope) -> Any:
        """Turn rows, each by its position."""
        return rotate(self.space, rows, positions, rope)

    def open(self, kind: str, config: Config) -> Cache:
        """A fresh cache, which has allocated nothing yet."""
        if kind not in self.kinds:
            raise Unsupported(f"no kind {kind!r}; there are {', '.join(self.kinds)}")
        cache: Cache = self.kinds[kind](config, self.space)
        return cache
