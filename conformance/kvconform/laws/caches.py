"""What the laws of caches of one sequence share: how sides begin and end, and how their ends are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kvconform.judge.levels import visible, whole_buffer
from kvconform.judge.trial_result import TrialResult
from kvconform.laws import law
from kvconform.laws.law import DISAGREE, Results, Sides
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Array, Config
from kvspec.session.step import Step
from kvspec.trace import Trace

END = ("append 1", "append 2", "view", "append 1")
"""What both sides end with: enough to see the whole state of a cache."""


def plain(config: Config, *texts: str) -> Trace:
    """A trace of these operations, on the kind of cache that has this configuration."""
    kind = "sink" if config.sinks else "ring" if config.window else "growing"
    return law.trace(kind, config, *texts)


def trace(config: Config, *texts: str) -> Trace:
    """The same, with the end."""
    return plain(config, *texts, *END)


def start(draw: st.DrawFn, most: int = 3, least: int = 0) -> tuple[list[str], int]:
    """`least` to `most` appends to begin with, and the offset they lead to."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=least, max_size=most))
    return [f"append {n}" for n in sizes], sum(sizes)


def most_seen(config: Config) -> int:
    """The most rows that a query sees through a window; beside one that does not count them, the sinks too."""
    return (config.window or 0) + (config.sinks or 0 if config.beside else 0)


def once_or_split(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """The same rows in one append, and in several."""
    parts = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5))
    return [f"append {sum(parts)}"], [f"append {n}" for n in parts]


def beside_another(draw: st.DrawFn, before: list[str]) -> list[str]:
    """These operations, with operations on another cache in between."""
    others = ["append 1", "append 3", "rewind 1", "free", "append 2", "view"]
    between = [f"B: {draw(st.sampled_from(others))}" for _ in before]
    mixed = [op for pair in zip(before, between, strict=True) for op in pair]
    return ["open B", "B: append 2", *mixed, "B: append 1"]


def positions(cache: Any) -> dict[int, int]:
    """The position of each row of a list model."""
    return {serial: i for i, serial in enumerate(cache.tokens)}


def difference(sides: Sides, results: Results, numbers: Callable[[Any], dict[int, int]] = positions) -> str:
    """How what each query sees at the end differs; empty if it does not. Rows are known by their positions, or by
    what `numbers` gives for each."""
    left, right = (_end(side, result, numbers) for side, result in zip(sides, results, strict=True))
    for op, a, b in ((op, a, b) for i, op in enumerate(END) for a in left[i] for b in right[i]):
        if a != b:
            return f"after the left side `{op}` shows {a}, after the right side {b}"
    return ""


def _end(side: Trace, result: TrialResult, numbers: Callable[[Any], dict[int, int]]) -> list[list[str]]:
    """For each of the last steps what each sequence sees; a row's name is its number."""
    if len(result.steps) < len(side.ops):
        return [[f"nothing: it failed at step {len(result.steps)}"]] * len(END)
    found = numbers(at_the_end(side).caches["A"])
    return [_shown(step, result, found) for _, step in result.steps[-len(END) :]]


def _shown(step: Step, result: TrialResult, numbers: dict[int, int]) -> list[str]:
    """A line for each sequence. An adapter that leaves masking to its caller shows its view alone."""
    arrays = step.arrays
    what = "view" if "view.k" in arrays else "history"
    if what == "history" and "mask" not in arrays:
        return []
    if what == "view":
        names = visible.one_name_each(arrays.get("view.k"), arrays.get("view.v"), result.book)
    else:
        names = visible.history_names(step, whole_buffer.hidden(step), result.book)
    if names is None:
        return [DISAGREE]
    mask = arrays.get("mask") if what == "history" else None
    return [_sequence(rows, mask, b, numbers) for b, rows in enumerate(names)]


def _sequence(rows: list[int], mask: Array | None, sequence: int, numbers: dict[int, int]) -> str:
    count = 1 if mask is None else mask.shape[2]
    queries = [visible.seen(rows, mask, (sequence, 0), q) or [] for q in range(count)]
    return ", ".join(" ".join(str(p) for p in sorted(numbers.get(s, -1) for s, _ in q)) or "-" for q in queries)
