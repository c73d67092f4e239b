"""The law of copies into buffers."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import copy
from kvconform.judge.levels import visible
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import DISAGREE, Results, Sides, of_ends, register, trace, unequal
from kvspec.geometry import Config


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the buffers differ in the end; rows are known by their serials, which both sides give out alike."""
    return unequal(*map(_rows, results))


def _rows(result: TrialResult) -> str:
    """The rows of the buffer after the last operation."""
    arrays = result.steps[-1][1].arrays
    names = visible.one_name_each(arrays.get("state.k"), arrays.get("state.v"), result.book)
    return DISAGREE if names is None else visible.words(names[0])


law = partial(register, needs=("copy",), configs=copy.configs, compare=difference)


@law("COPY-23")
def split(draw: st.DrawFn, config: Config) -> Sides:
    """n rows copied at once, or in parts, each to where it belongs."""
    capacity, sliding = config.capacity or 1, draw(st.booleans())
    parts = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5))
    parts = parts if sliding or sum(parts) <= capacity else [capacity // 2, capacity - capacity // 2]
    near = draw(st.sampled_from((0, capacity, *copy.POWERS)))
    at = draw(st.integers(near, near + capacity - 1)) if sliding else draw(st.integers(0, capacity - sum(parts)))
    source = draw(st.sampled_from(("", " fill=bits", " dtype=f32 fill=edges"))) + " sliding=1" * sliding
    before = f"copy {draw(st.integers(0, capacity))} 0"
    several = [f"copy {n} {at + sum(parts[:i])}{source}" for i, n in enumerate(parts)]
    one = f"copy {sum(parts)} {at}{source}"
    return Sides(trace("copy", config, before, one), trace("copy", config, before, *several))
