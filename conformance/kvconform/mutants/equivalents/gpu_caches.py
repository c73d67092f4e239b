"""Mutants of the GPU's growing and ring caches, snapshots, copies and rounds that no trace can find, and why."""

from __future__ import annotations

ARGUED: dict[str, str] = {}
