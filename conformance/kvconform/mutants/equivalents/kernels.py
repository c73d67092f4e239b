"""Mutants of the kernels' text that no trace can find, and why."""

from __future__ import annotations

ARGUED: dict[str, str] = {}
