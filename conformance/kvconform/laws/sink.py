"""The laws of a window beside sinks that are its own; `growing` has the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import difference, most_seen, start, trace
from kvconform.laws.law import Sides, register
from kvref.list_model.sink import SinkModel
from kvspec.geometry import Config
from kvspec.operations.table import listed

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


@law("SINK-45")
def kept_twice(draw: st.DrawFn, config: Config) -> Sides:
    """Rows that are kept, and some of them kept again; or these at once."""
    before, seen = _seen(draw, config)
    first = draw(_some(seen))
    second = f"keep {listed(draw(_some(first)))}"
    return Sides(trace(config, *before, f"keep {listed(first)}", second), trace(config, *before, second))


@law("SINK-46")
def all_kept(draw: st.DrawFn, config: Config) -> Sides:
    """All rows that are seen are kept, or nothing is done."""
    before, seen = _seen(draw, config)
    return Sides(trace(config, *before, f"keep {listed(seen)}"), trace(config, *before))


@law("SINK-47", compare=partial(difference, numbers=SinkModel.numbered))
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """Some rows are kept; or as many rows alone were appended."""
    n = draw(st.integers(1, most_seen(config)))
    rows = draw(_some(range(n)))
    return Sides(trace(config, f"append {n}", f"keep {listed(rows)}"), trace(config, f"append {len(rows)}"))


def _seen(draw: st.DrawFn, config: Config) -> tuple[list[str], list[int]]:
    """Some appends, and the positions of the rows that the newest query then sees."""
    before, offset = start(draw, most=4, least=1)
    recent, sinks = most_seen(config) - (config.sinks or 0), config.sinks or 0
    return before, [p for p in range(offset) if p < sinks or p >= offset - recent]


def _some(positions: Sequence[int]) -> st.SearchStrategy[list[int]]:
    """Some of these, one at least, in order."""
    return st.sets(st.sampled_from(positions), min_size=1).map(sorted)
