"""The cost bound of an append to a ring: the bound of a growing cache, which takes windows into account."""

from __future__ import annotations

from kvspec.costs.growing import append

__all__ = ["append"]
