"""The reference as an adapter: exact, slow, and the only one that touches `kvref`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvref.growing import Growing
from kvref.ring import Ring
from kvspec import SPEC_VERSION
from kvspec.contract import Cache
from kvspec.errors import Unsupported
from kvspec.geometry import Config


class Reference:
    """Every profile at level storage, growing as the spec says. Subclass it and change `caches` for a variant."""

    caches: ClassVar[dict[str, Any]] = {"growing": Growing, "ring": Ring}

    def describe(self) -> dict[str, Any]:
        """What it is and claims."""
        storage = {"level": "storage", "grows": "step"}
        return {
            "name": "reference",
            "version": SPEC_VERSION,
            "device": f"numpy {np.__version__}",
            "profiles": {"growing": storage, "ring": storage, "mask": "storage", "snapshot": "storage"},
        }

    def open(self, profile: str, config: Config) -> Cache:
        """A fresh cache."""
        if profile not in self.caches:
            raise Unsupported(f"no profile {profile!r}; there are {', '.join(self.caches)}")
        cache: Cache = self.caches[profile](config)
        return cache
