"""Speculation in the list model."""

from __future__ import annotations

from typing import Any

DO: dict[str, Any] = {}
MODELS: dict[str, Any] = {}
LOOK: dict[str, Any] = {}
APPEND: dict[str, Any] = {}


def look(lists: Any, op: Any, step: Any) -> None:
    """All caches of a round, after an operation on the whole of it."""
