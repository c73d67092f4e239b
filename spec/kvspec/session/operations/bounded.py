"""A bounded cache is observed as a growing cache is, and has its operations."""

from __future__ import annotations

from kvspec.session.operations.growing import look

__all__ = ["look"]
