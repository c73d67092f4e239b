"""Builds a trace operation by operation: the code that the strategies of all chapters share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kvconform.oracle.follow import ModelledTrace
from kvspec.geometry import Config
from kvspec.trace import Trace


def geometry(draw: st.DrawFn, heads: int = 3, widest: int = 16) -> Config:
    """Draw the geometry of rows, up to these numbers of heads and elements; the caller draws all other sizes."""
    return Config(
        kv_heads=draw(st.integers(1, heads)),
        k_dim=draw(st.integers(5, widest)),
        v_dim=draw(st.integers(5, widest)),
        dtype=draw(st.sampled_from(("f16", "bf16", "f32"))),
    )


def mostly(draw: st.DrawFn, usual: st.SearchStrategy[Any], rare: st.SearchStrategy[Any]) -> Any:
    """Draw from the usual values two times in three. (`one_of` counts a strategy named twice only once.)"""
    return draw(usual if draw(st.integers(0, 2)) < 2 else rare)


FAR = (1 << 31, (1 << 31) - 1, -(1 << 31))
"""Numbers at which a 32-bit integer changes its sign."""


class Drawing(ModelledTrace):
    """The operations so far, applied to the list model, which tells a draw where the boundaries are."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(start)
        self.draw = draw

    def of(self, *choices: Any) -> Any:
        """Draw one of these; earlier ones count as simpler."""
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        """Draw a number from low to high, both included."""
        return self.draw(st.integers(low, max(low, high)))


class DrawingOnOne(Drawing):
    """A trace on one or more caches; the method `_kind()` makes an operation of that kind on one of them."""

    cache = "A"

    def add(self, kind: str) -> None:
        """Add one or several operations of this kind and apply them to the list model."""
        self.cache = self.draw(st.sampled_from(sorted(self.session.caches)))
        found = getattr(self, f"_{kind}")()
        for op in found if isinstance(found, list) else [found]:
            op |= {} if self.cache == "A" or "cache" in op else {"cache": self.cache}
            self.follow(op)
