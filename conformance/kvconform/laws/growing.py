"""The laws of growing caches. Rings, and windows beside sinks, keep most of them too."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import beside_another, difference, most_seen, once_or_split, start, trace
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config

law = partial(register, compare=difference)


@law("CACHE-10", kinds=("growing", "ring", "sink"))
def split(draw: st.DrawFn, config: Config) -> Sides:
    """n rows in one append, or in several."""
    before, _ = start(draw)
    once, several = once_or_split(draw)
    return Sides(trace(config, *before, *once), trace(config, *before, *several))


@law("CACHE-11", kinds=("growing", "ring", "sink"))
def append_rewind(draw: st.DrawFn, config: Config) -> Sides:
    """Rows appended and rewound again, or never appended."""
    before, offset = start(draw, most=2)
    room = 6 if config.window is None else most_seen(config) - offset
    n = draw(st.integers(0, max(0, min(6, room))))
    return Sides(trace(config, *before, f"append {n}", f"rewind {offset}"), trace(config, *before))


@law("CACHE-12", kinds=("growing", "ring"))
def rewinds(draw: st.DrawFn, config: Config) -> Sides:
    """Two rewinds, or the lower alone."""
    most = 12 if config.window is None else min(12, config.window)
    offset = draw(st.integers(0, most))
    a = draw(st.integers(0, offset))
    b = draw(st.integers(0, a))
    begin = f"append {offset}"
    return Sides(trace(config, begin, f"rewind {a}", f"rewind {b}"), trace(config, begin, f"rewind {b}"))


@law("GROW-22", needs=("growing",))
@law("RING-31", needs=("ring",))
def steps(draw: st.DrawFn, config: Config) -> Sides:
    """Two growth steps."""
    before, _ = start(draw, most=5)
    other = draw(st.sampled_from((1, 2, 3, 5, 64)))
    return Sides(trace(config, *before), trace(config.changed(step=other), *before))


@law("CACHE-13", kinds=("growing", "ring", "sink"))
def batch(draw: st.DrawFn, config: Config) -> Sides:
    """A batch, or one sequence alone."""
    before, _ = start(draw, most=5)
    several = config.changed(batch=draw(st.integers(2, 3)))
    return Sides(trace(several, *before), trace(config.changed(batch=1), *before))


@law("CACHE-14", kinds=("growing", "ring", "sink"))
def independence(draw: st.DrawFn, config: Config) -> Sides:
    """Another cache used in between, or not."""
    before, _ = start(draw)
    return Sides(trace(config, *beside_another(draw, before)), trace(config, *before))
