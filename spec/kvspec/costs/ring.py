"""The cost bound of an append to a ring: that of a growing cache, whose bound knows of windows."""

from __future__ import annotations

from kvspec.costs.growing import append

__all__ = ["append"]
