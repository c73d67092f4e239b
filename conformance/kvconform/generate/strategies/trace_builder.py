"""A trace in the making: what the draws of all chapters share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kvconform.oracle.follow import ModelledTrace
from kvspec.geometry import Config
from kvspec.trace import Trace


def geometry(draw: st.DrawFn, heads: int = 3, widest: int = 16) -> Config:
    """Rows of any geometry, of up to so many heads and elements; every other size is the caller's to draw."""
    return Config(
        kv_heads=draw(st.integers(1, heads)),
        k_dim=draw(st.integers(5, widest)),
        v_dim=draw(st.integers(5, widest)),
        dtype=draw(st.sampled_from(("f16", "bf16", "f32"))),
    )


def mostly(draw: st.DrawFn, usual: st.SearchStrategy[Any], rare: st.SearchStrategy[Any]) -> Any:
    """Two times in three one of the usual. (`one_of` takes a strategy that is named twice for one.)"""
    return draw(usual if draw(st.integers(0, 2)) < 2 else rare)


FAR = (1 << 31, (1 << 31) - 1, -(1 << 31))
"""Where a narrower number changes its sign."""


class Drawing(ModelledTrace):
    """The operations so far, followed by the list model: by it a draw knows where the boundaries are."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(start)
        self.draw = draw

    def of(self, *choices: Any) -> Any:
        """One of these, the earlier the simpler."""
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        """Any from low to high."""
        return self.draw(st.integers(low, max(low, high)))


class DrawingOnOne(Drawing):
    """A trace on one cache or on several, each operation on one of them: `_kind()` makes one of a kind."""

    cache = "A"

    def add(self, kind: str) -> None:
        """Add one operation of this kind, or several, and follow them."""
        self.cache = self.draw(st.sampled_from(sorted(self.session.caches)))
        found = getattr(self, f"_{kind}")()
        for op in found if isinstance(found, list) else [found]:
            op |= {} if self.cache == "A" or "cache" in op else {"cache": self.cache}
            self.follow(op)
