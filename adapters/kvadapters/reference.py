"""The reference as an adapter: exact, slow, and the only one that touches `kvref`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from kvref.abilities.draft import Round
from kvref.abilities.rope import rotate
from kvref.memory import mem, meter
from kvspec import SPEC_VERSION
from kvspec.contract import CHAPTERS, Cache, Rope
from kvspec.contract.timing import HostTimed
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config
from kvspec.operations.input_forms import INPUTS
from kvspec.registry import CACHES, ByKind


class Reference(HostTimed):
    """Every kind at level storage, growing as the spec says. Subclass it and change `caches` for a variant."""

    caches: ClassVar[Mapping[str, Any]] = ByKind("kvref.caches")

    def describe(self) -> dict[str, Any]:
        """What it is and claims: everything."""
        storage = {"level": "storage", "grows": "step"}
        return {
            "name": "reference",
            "version": SPEC_VERSION,
            "device": f"numpy {np.__version__}",
            "refusals": "cited",
            "inputs": list(INPUTS[1:]),
            "chapters": {c: storage if c in CACHES else "storage" for c in CHAPTERS},
        }

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        """The largest batch of this config that fits, and whether even one sequence does."""
        return mem.fit(kind, config, free, reserve, most)

    def meter(self) -> dict[str, int]:
        """What was counted so far, over all caches of the process."""
        return meter.meter.reading()

    def place(self, *arrays: Array) -> tuple[Array, ...]:
        """Copies on the device."""
        return tuple(meter.placed(a) for a in arrays)

    def fetch(self, placed: Array) -> Array:
        """A copy on the host."""
        return meter.fetched(placed)

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        """Rows turned each by its position."""
        return rotate(rows, positions, rope)

    def open(self, kind: str, config: Config) -> Cache:
        """A fresh cache."""
        if kind not in self.caches:
            raise Unsupported(f"no kind {kind!r}; there are {', '.join(self.caches)}")
        cache: Cache = self.caches[kind](config)
        return cache

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """A round over these caches, None for a layer that has none."""
        return Round(caches, isolated)
