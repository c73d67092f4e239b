"""The laws of ragged caches, whose ends are compared by what sequences hold.

Every side ends with a feed of no rows, after which everything is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import ragged
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import Results, Sides, of_ends, positions, register, trace, unequal
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import WORDS, Config
from kvspec.operations.table import listed
from kvspec.trace import Trace

MOST_ROWS = 5
"""Rows that a sequence gets at once."""


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the rows of the sequences differ in the end; empty if they do not. Rows are known by their position in
    the list model; a side that has fewer sequences is held against the first of the other."""
    left, right = map(_sequences, sides, results)
    fewer = min(len(left), len(right))
    return unequal(left[:fewer], right[:fewer])


def _sequences(side: Trace, result: TrialResult) -> list[str]:
    """The rows of every sequence, by position."""
    sequences = enumerate(at_the_end(side).caches["A"].all)
    return [positions(result, f"state.{s}", rows) for s, rows in sequences]


@dataclass
class _Batch:
    """Draws operations that are not refused: for the batch, and for its first sequence alone."""

    draw: st.DrawFn
    lengths: list[int]
    window: int | None = None
    ops: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)

    def fill(self, count: int) -> None:
        """Feed blocks, and trim now and then."""
        for _ in range(count):
            trims = self.draw(st.integers(0, 3)) == 0
            most = self._droppable() if trims else [MOST_ROWS] * len(self.lengths)
            each = [self.draw(st.integers(0, high)) for high in most]
            self.lengths = [a - b if trims else a + b for a, b in zip(self.lengths, each, strict=True)]
            name = "trim" if trims else "feed"
            self.ops.append(f"{name} {listed(each)}")
            self.alone.append(f"{name} {each[0]}")

    def _droppable(self) -> list[int]:
        """How many rows of each sequence can be trimmed."""
        return [n if self.window is None or n <= self.window else 0 for n in self.lengths]


def _built(draw: st.DrawFn, config: Config) -> _Batch:
    batch = _Batch(draw, [0] * config.batch, config.window)
    batch.fill(draw(st.integers(1, 8)))
    return batch


def _trace(config: Config, texts: Sequence[str], sequences: int) -> Trace:
    return trace("ragged", config, *texts, f"feed {listed([0] * sequences)}")


def _several() -> st.SearchStrategy[Config]:
    """Configurations of two sequences or more."""
    return ragged.configs().map(lambda config: config.changed(batch=max(2, config.batch)))


@of_ends
def newest(sides: Sides, results: Results) -> str:
    """How the rows of sequences over a window differ from the newest of those without one."""
    left, right = map(_sequences, sides, results)
    most = (sides.left.config.window or 1) - 1
    return unequal(left, [_last(each.split(), most) for each in right])


def _last(words: Sequence[str], most: int) -> str:
    return " ".join(words[max(0, len(words) - most) :]) or "nothing"


@st.composite
def _windowed(draw: st.DrawFn) -> Config:
    """Configurations over a window."""
    config = draw(ragged.configs())
    return config.changed(window=config.window or draw(st.integers(1, 5)))


law = partial(register, configs=ragged.configs, compare=difference)


@law("RAGGED-27", needs=("ragged",), configs=_several)
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """The first sequence among others, or by itself."""
    b = _built(draw, config)
    return Sides(_trace(config, b.ops, config.batch), _trace(config.changed(batch=1), b.alone, 1))


@law("RAGGED-28", needs=("ragged",))
def side(draw: st.DrawFn, config: Config) -> Sides:
    """Padding on one side, or on the other."""
    b = _built(draw, config)
    sides = (_trace(config.changed(padding=padding), b.ops, config.batch) for padding in WORDS["padding"])
    return Sides(*sides)


@law("RAGGED-29", needs=("ragged",))
def blocks(draw: st.DrawFn, config: Config) -> Sides:
    """Rows in one block, or in several, each sequence at its own pace."""
    b = _built(draw, config)
    parts = [[draw(st.integers(0, 3)) for _ in b.lengths] for _ in range(draw(st.integers(2, 4)))]
    whole = f"feed {listed(map(sum, zip(*parts, strict=True)))}"
    several = [f"feed {listed(each)}" for each in parts]
    return Sides(_trace(config, [*b.ops, whole], config.batch), _trace(config, [*b.ops, *several], config.batch))


@law("RAGGED-30", needs=("ragged", "growing"))
def apart(draw: st.DrawFn, config: Config) -> Sides:
    """A batch without a window taken apart and joined again, or left alone; then more rows. With a window it would
    need rings."""
    config = config.changed(window=None)
    b = _built(draw, config)
    names = "BCDE"[: config.batch]
    opens = [f"open {name} kind=growing batch=1" for name in names]
    taken = [f"extract {s} {name}" for s, name in enumerate(names)]
    more = f"feed {listed(draw(st.integers(0, 2)) for _ in names)}"
    left = [*b.ops, *opens, *taken, f"join {names}", more]
    return Sides(_trace(config, left, config.batch), _trace(config, [*b.ops, more], config.batch))


@law("RAGGED-35", needs=("ragged",), configs=_windowed, compare=newest)
def windowed(draw: st.DrawFn, config: Config) -> Sides:
    """Over a window, or without one."""
    b = _built(draw, config)
    sides = (_trace(each, b.ops, config.batch) for each in (config, config.changed(window=None)))
    return Sides(*sides)
