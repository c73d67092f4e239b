"""The adapter that any runtime makes: its caches, and what it says of itself."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from kvadapters.gpu.buffers import Workspace
from kvadapters.gpu.growing import Growing
from kvadapters.gpu.ring import Ring
from kvadapters.gpu.runtime import Runtime
from kvspec import SPEC_VERSION
from kvspec.contract import Cache
from kvspec.errors import Unsupported
from kvspec.geometry import Config

CHECKS = "KVCONFORM_GPU_CHECKS"
"""Environment variable: 1 has guard bands checked whenever rows are read."""


class Caches:
    """Opens caches on a runtime; they share its scratch memory."""

    kinds: ClassVar[dict[str, Any]] = {"growing": Growing, "ring": Ring}

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
            "profiles": {
                "growing": {"level": "storage", "grows": "step"},
                "ring": {"level": "storage", "grows": "free"},
                "mask": "storage",
                "snapshot": "storage",
            },
        }

    def open(self, profile: str, config: Config) -> Cache:
        """A fresh cache, which has allocated nothing yet."""
        if profile not in self.kinds:
            raise Unsupported(f"no profile {profile!r}; there are {', '.join(self.kinds)}")
        cache: Cache = self.kinds[profile](config, self.space)
        return cache
