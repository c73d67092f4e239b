"""The schema of vectors: written by hand, but for the kinds that there are."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from kvspec.registry import KINDS


def schema() -> dict[str, Any]:
    """Give the published schema with the kinds of today."""
    found: dict[str, Any] = json.loads(
        resources.files("kvspec").joinpath("schemas", "vectors.json").read_text(encoding="utf-8")
    )
    found["$defs"]["vector"]["properties"]["kind"]["enum"] = list(KINDS)
    return found
