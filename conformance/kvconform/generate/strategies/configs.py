"""Draws configurations, and the numbers at which they and their traces meet boundaries."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kvspec.geometry import Config
from kvspec.registry import needed

FAR = (1 << 31, (1 << 31) - 1, -(1 << 31))
"""Numbers at which a 32-bit integer changes its sign."""

LARGEST_WINDOW = 24


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


@st.composite
def configs(draw: st.DrawFn, kind: str) -> Config:
    """Draw any geometry, mostly with small windows and steps, so that traces meet boundaries often."""
    small = st.integers(1, 6)
    window = mostly(draw, small, st.integers(7, LARGEST_WINDOW)) if "window" in needed(kind) else None
    config = geometry(draw).changed(
        batch=draw(st.sampled_from((1, 1, 2, 3))),
        step=mostly(draw, small, st.sampled_from((8, 256))),
        window=window,
        max_len=mostly(draw, small, st.integers(7, LARGEST_WINDOW)) if "max_len" in needed(kind) else None,
    )
    return _beside_sinks(draw, config) if "sinks" in needed(kind) else config


def _beside_sinks(draw: st.DrawFn, config: Config) -> Config:
    """Draw sinks beside the window, which is made larger by them where it counts them."""
    sinks, beside = draw(st.integers(1, 4)), draw(st.sampled_from((None, 1)))
    window = (config.window or 0) + (0 if beside else sinks)
    return config.changed(window=window, sinks=sinks, beside=beside, shifted=draw(st.sampled_from((None, 1))))
