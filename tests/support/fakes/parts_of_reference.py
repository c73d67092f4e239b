"""The reference, claiming a part of what it does: `support.fakes.parts_of_reference:ring_storage_mask_visible`.

The name lists the chapters that it claims, and behind them their level; `mask-causal` is the chapter without an
ability. It does the rest too, and claims it not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvadapters.reference import Reference
from kvspec.contract import LEVELS


def __getattr__(name: str) -> type[Reference]:
    claims, chapters = dict[str, Any](), list[str]()
    for word in name.split("_"):
        if word in LEVELS:
            parts = [chapter.split("-") for chapter in chapters]
            claims |= {chapter: {"level": word, "without": without} for chapter, *without in parts}
            chapters = []
        else:
            chapters.append(word)
    if not claims or chapters:
        raise AttributeError(name)

    class Part(Reference):
        def describe(self) -> Mapping[str, Any]:
            return {**super().describe(), "name": name, "chapters": claims}

    return Part
