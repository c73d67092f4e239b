"""Copies in the list model."""

from __future__ import annotations

from typing import Any

DO: dict[str, Any] = {}
MODELS: dict[str, Any] = {}
LOOK: dict[str, Any] = {}
APPEND: dict[str, Any] = {}
