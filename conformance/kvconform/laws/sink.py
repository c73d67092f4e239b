"""The laws of a window beside sinks that are its own; `growing` has the others."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import difference, most_seen, start, trace
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config

law = partial(register, needs=("sink",), compare=difference)


@law("SINK-33")
def beside(draw: st.DrawFn, config: Config) -> Sides:
    """A window beside the sinks, or one that is larger by the sinks and counts them."""
    before, _ = start(draw, most=5)
    counting = config.changed(beside=None, window=most_seen(config))
    window = most_seen(config) - (config.sinks or 0)
    return Sides(trace(config.changed(beside=1, window=window), *before), trace(counting, *before))


@law("SINK-34")
def shifted(draw: st.DrawFn, config: Config) -> Sides:
    """Positions within the cache, or in the sequence."""
    before, _ = start(draw, most=5)
    return Sides(trace(config.changed(shifted=1), *before), trace(config.changed(shifted=None), *before))
