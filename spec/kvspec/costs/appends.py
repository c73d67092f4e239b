"""Cost bounds of appended rows: each kind of cache has its own."""

from __future__ import annotations

from functools import cache

from kvspec.costs.terms import Bounded
from kvspec.registry import KINDS, found


@cache
def appends() -> dict[str, Bounded]:
    """Give the bound of an append by the kind of cache: `append` in the file of its chapter."""
    return {kind: append for kind, append in found("kvspec.costs", "append").items() if kind in KINDS}
