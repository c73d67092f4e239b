"""The laws of a window beside sinks that are its own; `growing` has the others."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import difference, start, trace
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config

law = partial(register, needs=("sink",), compare=difference)


def most(config: Config) -> int:
    """How many rows a query sees."""
    return (config.window or 0) + (config.sinks or 0 if config.beside else 0)


@law("SINK-32")
def append_rewind(draw: st.DrawFn, config: Config) -> Sides:
    """Rows appended and rewound again, or never appended."""
    before, offset = start(draw, most=2)
    n = draw(st.integers(0, max(0, min(6, most(config) - offset))))
    return Sides(trace(config, *before, f"append {n}", f"rewind {offset}"), trace(config, *before))


@law("SINK-33")
def beside(draw: st.DrawFn, config: Config) -> Sides:
    """A window beside the sinks, or one that is larger by the sinks and counts them."""
    before, _ = start(draw, most=5)
    counting = config.changed(beside=None, window=most(config))
    window = most(config) - (config.sinks or 0)
    return Sides(trace(config.changed(beside=1, window=window), *before), trace(counting, *before))


@law("SINK-34")
def shifted(draw: st.DrawFn, config: Config) -> Sides:
    """Positions within the cache, or in the sequence."""
    before, _ = start(draw, most=5)
    return Sides(trace(config.changed(shifted=1), *before), trace(config.changed(shifted=None), *before))
