"""Mutants of the GPU's stores, batches, pages, buckets, attention and RoPE that no trace can find, and why."""

from __future__ import annotations

ARGUED: dict[str, str] = {}
