"""The cost bound of an append to a bounded cache: that of a growing cache."""

from __future__ import annotations

from kvspec.costs.growing import append

__all__ = ["append"]
