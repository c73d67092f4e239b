"""The reference with a smaller claim, each honest about what it takes; and adapters that take nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvadapters.reference import Reference
from kvref.caches.ring import Ring
from kvspec.contract import Lengths
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Config
from kvspec.registry import CACHES

LIMITS: dict[str, dict[str, Any]] = {
    "AllLimits": {
        "rows": 32,
        "append": 1,
        "batch": 1,
        "heads": 2,
        "window": {"least": 4},
        "dims": {"multiple": 16},
    },
    "FewRows": {"rows": 4},
    "SingleRows": {"append": 1},
    "OneSequence": {"batch": 1},
    "OneHead": {"heads": 1},
    "WideWindows": {"window": {"least": 2}},
    "WiderWindows": {"window": {"least": 4}},
    "WideRows": {"dims": {"multiple": 64, "equal": True}},
}
"""Limits by the name of the adapter that has them."""

CLAIMED: dict[str, tuple[str, ...]] = {
    "AllLimits": ("ring", "snapshot", "mask"),
    "OneSequence": ("store", "batch", "attention"),
    "FewRows": ("growing", "draft", "rope"),
    "SingleRows": ("growing", "ring", "page"),
}
"""The chapters that they claim, where these are not a growing cache and a ring."""


def __getattr__(name: str) -> type[Reference]:
    if name not in LIMITS:
        raise AttributeError(name)
    storage = {"level": "storage", "grows": "step"}
    chapters = {c: storage if c in CACHES else "storage" for c in CLAIMED.get(name, ("growing", "ring"))}

    class Limited(Reference):
        def describe(self) -> dict[str, Any]:
            return {**super().describe(), "name": name, "chapters": chapters, "limits": LIMITS[name]}

    return Limited


class FullRing:
    """Has no slot, and says so: it refuses every row."""

    def __init__(self, config: Config) -> None:
        ring = Ring(config)
        self.ring, self.read, self.can_rewind, self.rewind = ring, ring.read, ring.can_rewind, ring.rewind
        self.free = ring.free

    def append(self, *rows: Any) -> None:
        if rows[0].shape[2]:
            raise Refused("", "more rows than there are slots")
        self.ring.append(*rows)

    def lengths(self) -> Lengths:
        return self.ring.lengths()._replace(capacity=0)


class NoSlots:
    """A ring that takes as many rows as it has allocated: none."""

    ring: type[FullRing] = FullRing

    def describe(self) -> dict[str, Any]:
        return {"name": "no slots", "chapters": {"ring": {"level": "visible", "chunk": "capacity"}}}

    def open(self, kind: str, config: Config) -> Any:
        if kind != "ring":
            raise Unsupported(kind)
        return self.ring(config)


class Takes(FullRing):
    """Takes every row, and has no slot."""

    def append(self, *rows: Any) -> None:
        self.ring.append(*rows)


class TwoSlots(Takes):
    """Has two slots from the start."""

    def lengths(self) -> Lengths:
        return self.ring.lengths()._replace(capacity=2)


class CapacityOfTwo(NoSlots):
    """A ring that takes two rows at once."""

    ring = TwoSlots


class TakesWhatItRefuses(NoSlots):
    """A ring that takes rows for which it says it has no slot."""

    ring = Takes


MARK = "KVCONFORM_TEST_MARK"
"""Environment variable: the file that the first process makes."""


class SaysLessLater(Reference):
    """Claims the most in the first process, and less in all others."""

    later: Mapping[str, Any] = {
        "chapters": {"ring": {"level": "visible", "without": ["view", "ask", "rewind", "free"]}}
    }

    def describe(self) -> dict[str, Any]:
        mark = Path(os.environ[MARK])
        first = {"name": "says less", "chapters": dict.fromkeys(("ring", "growing"), "visible")}
        if mark.exists():
            return {**first, **self.later}
        mark.touch()
        return first


class LimitsLater(SaysLessLater):
    """Takes few rows in all processes but the first."""

    later: Mapping[str, Any] = {"limits": {"rows": 1}}


class RefusesLater(SaysLessLater):
    """Takes one row at once in all processes but the first."""

    later: Mapping[str, Any] = {
        "chapters": {"ring": {"level": "visible", "chunk": 1}, "growing": "visible"},
    }
