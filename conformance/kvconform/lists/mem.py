"""Planning memory: what the list model says of it."""

from __future__ import annotations

from typing import Any

DO: dict[str, Any] = {}
MODELS: dict[str, Any] = {}
LOOK: dict[str, Any] = {}
APPEND: dict[str, Any] = {}
