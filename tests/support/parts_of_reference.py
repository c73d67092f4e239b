"""The reference, claiming a part of what it does: `support.parts_of_reference:ring_storage_mask_snapshot_visible`.

The name lists the chapters that it claims, and behind them their level. It does the rest too, and claims it not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvadapters.reference import Reference
from kvspec.contract import LEVELS


def __getattr__(name: str) -> type[Reference]:
    claims, chapters = dict[str, str](), list[str]()
    for word in name.split("_"):
        if word in LEVELS:
            claims |= dict.fromkeys(chapters, word)
            chapters = []
        else:
            chapters.append(word)
    if not claims or chapters:
        raise AttributeError(name)

    class Part(Reference):
        def describe(self) -> Mapping[str, Any]:
            return {**super().describe(), "name": name, "chapters": claims}

    return Part
