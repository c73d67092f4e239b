"""The laws of a window beside sinks."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws import law as laws
from kvconform.laws.caches import END, beside_another, difference, once_or_split, start
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config
from kvspec.trace import Trace

law = partial(register, needs=("sink",), compare=difference)


def trace(config: Config, *texts: str) -> Trace:
    """A trace of these operations, with the end that shows all."""
    return laws.trace("sink", config, *texts, *END)


def most(config: Config) -> int:
    """How many rows a query sees."""
    return (config.window or 0) + (config.sinks or 0 if config.beside else 0)


@law("SINK-31")
def split(draw: st.DrawFn, config: Config) -> Sides:
    """n rows in one append, or in several."""
    before, _ = start(draw)
    once, several = once_or_split(draw)
    return Sides(trace(config, *before, *once), trace(config, *before, *several))


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


@law("SINK-35")
def batch(draw: st.DrawFn, config: Config) -> Sides:
    """A batch, or one sequence alone."""
    before, _ = start(draw, most=5)
    several = config.changed(batch=draw(st.integers(2, 3)))
    return Sides(trace(several, *before), trace(config.changed(batch=1), *before))


@law("SINK-36")
def independence(draw: st.DrawFn, config: Config) -> Sides:
    """Another cache used in between, or not."""
    before, _ = start(draw)
    return Sides(trace(config, *beside_another(draw, before)), trace(config, *before))
