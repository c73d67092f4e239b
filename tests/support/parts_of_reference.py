"""The reference, claiming a part of what it does: `support.parts_of_reference:ring_mask_visible`.

The name lists the chapters that it claims, then the level. What it does not claim it does all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvadapters.reference import Reference


def __getattr__(name: str) -> type[Reference]:
    *chapters, level = name.split("_")
    if level not in ("visible", "storage"):
        raise AttributeError(name)

    class Part(Reference):
        def describe(self) -> Mapping[str, Any]:
            return {**super().describe(), "name": name, "chapters": dict.fromkeys(chapters, level)}

    return Part
