"""How a server is asked for an adapter: as a model of its name (vLLM), or by scales of all of them (llama.cpp)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

from kvadapters.probe.lora import ADAPTERS

LISTED = "/lora-adapters"
"""Where llama.cpp's server lists what it has loaded."""

Fields = Mapping[str, Mapping[str, Any]]
"""What a request says beside its other fields, by its adapter; empty stands for none."""


def fields(models: Collection[str], listed: str) -> Fields:
    """Give what a request says to a server that serves these models and lists this. Nothing, if it does not have
    all adapters of a probe."""
    if set(ADAPTERS) <= set(models):
        return {name: {"model": name} for name in ADAPTERS}
    loaded = _loaded(listed)
    if not set(ADAPTERS) <= set(loaded.values()):
        return {}
    return {
        name: {"lora": [{"id": number, "scale": float(each == name)} for number, each in loaded.items()]}
        for name in ("", *ADAPTERS)
    }


def _loaded(listed: str) -> dict[int, str]:
    """Read llama.cpp's list: the number of each adapter, and its file's name without an ending."""
    try:
        return {int(each["id"]): PurePath(each["path"]).stem for each in json.loads(listed)}
    except (ValueError, KeyError, TypeError):
        return {}
