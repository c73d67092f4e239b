"""The laws of batches, whose ends are compared by what one sequence holds.

Both sides end with a rollback that does nothing, and names the sequence to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import batch
from kvconform.judge import visible
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import Results, Sides, register
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config
from kvspec.notation import operation
from kvspec.trace import Trace

SEQUENCES = 4
"""Sequences of a batch, at most."""


def difference(sides: Sides, results: Results) -> str:
    """How the two ends differ; empty if they do not. Rows are known by their position in the list model."""
    left, right = map(_end, sides, results)
    return "" if left == right else f"after the left side the sequence holds {left}, after the right side {right}"


def _end(side: Trace, result: TrialResult) -> str:
    """What the sequence named last holds, layer by layer."""
    if len(result.steps) < len(side.ops):
        return f"nothing: it failed at step {len(result.steps)}"
    sequence, arrays = side.ops[-1]["sequence"], result.steps[-1][1].arrays
    expected: list[list[int]] = at_the_end(side).caches["A"].batched.all[sequence].rows
    pairs = [(f"batch.{layer}.{sequence}.k", f"batch.{layer}.{sequence}.v") for layer in range(len(expected))]
    names = [visible.one_name_each(arrays.get(k), arrays.get(v), result.book) for k, v in pairs]
    return "; ".join(map(_positions, names, expected))


def _positions(rows: list[list[int]] | None, expected: list[int]) -> str:
    """Positions of the rows of a layer; `?` for a row that should not be there."""
    if rows is None:
        return "keys and values that do not agree"
    return " ".join(str(expected.index(s)) if s in expected else "?" for s in rows[0]) or "nothing"


@dataclass
class _TraceBuilder:
    """Draws operations that are not refused: for each the sequence it is on (None: all), and its words."""

    draw: st.DrawFn
    config: Config
    m: int
    stored: int = 0
    lengths: list[int] = field(default_factory=list)
    ops: list[tuple[int | None, str]] = field(default_factory=list)

    def fill(self, count: int) -> None:
        """A row or more in the store, a batch, and `count` operations on it."""
        self.stored = self.number(1, self.config.max_len or 1)
        self.lengths = [0] * self.m
        for _ in range(count):
            getattr(self, self.draw(st.sampled_from(("step", "step", "scatter", "scatter", "rollback", "reset"))))()

    def number(self, low: int, high: int) -> int:
        """One of these."""
        return self.draw(st.integers(low, high))

    def step(self) -> None:
        """A row for each sequence, where there is room."""
        if max(self.lengths) < (self.config.max_len or 1):
            self.ops.append((None, "step"))
            self.lengths = [n + 1 for n in self.lengths]

    def scatter(self) -> None:
        """Some rows into one sequence."""
        s, n = self.number(0, self.m - 1), self.number(0, self.stored)
        self.ops.append((s, f"scatter {{}} {n}"))
        self.lengths[s] = n

    def rollback(self) -> None:
        """One sequence, to a length it has."""
        s = self.number(0, self.m - 1)
        to = self.number(0, self.lengths[s])
        self.ops.append((s, f"rollback {to} sequence={{}}"))
        self.lengths[s] = to

    def reset(self) -> None:
        """All sequences."""
        self.ops.append((None, "resetbatch"))
        self.lengths = [0] * self.m

    def texts(self) -> list[str]:
        """The words of all operations."""
        return [text.format(q) for q, text in self.ops]

    def trace(self, m: int, texts: Sequence[str], sequence: int) -> Trace:
        """These operations on a batch of m, whose end shows a sequence."""
        last = f"rollback {self.config.max_len} sequence={sequence}"
        ops = (f"append {self.stored}", f"batch {m}", *texts, last)
        return Trace("store", self.config, tuple(map(operation, ops)))


def _built(draw: st.DrawFn, config: Config) -> _TraceBuilder:
    builder = _TraceBuilder(draw, config, draw(st.integers(1, SEQUENCES)))
    builder.fill(draw(st.integers(0, 10)))
    return builder


law = partial(register, needs=("store", "batch"), configs=batch.configs, compare=difference)


@law("BATCH-28")
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """A sequence among others, or by itself."""
    b = _built(draw, config)
    s = b.number(0, b.m - 1)
    by_itself = [text.format(0) for q, text in b.ops if q in (None, s)]
    return Sides(b.trace(b.m, b.texts(), s), b.trace(1, by_itself, 0))


@law("BATCH-29")
def layers(draw: st.DrawFn, config: Config) -> Sides:
    """A scatter of all layers, or of each by itself in any order."""
    b = _built(draw, config)
    before, s, n = b.texts(), b.number(0, b.m - 1), b.number(0, b.stored)
    each = [f"scatter {s} {n} layer={layer}" for layer in draw(st.permutations(range(config.layers or 1)))]
    return Sides(b.trace(b.m, [*before, f"scatter {s} {n}"], s), b.trace(b.m, [*before, *each], s))


@law("BATCH-30")
def replays(draw: st.DrawFn, config: Config) -> Sides:
    """Steps, or replays of one that was captured at any time before."""
    b = _built(draw, config)
    texts, s = b.texts(), b.number(0, b.m - 1)
    at = b.number(0, len(texts))
    captured = [*texts[:at], "capture w", *("replay w" if x == "step" else x for x in texts[at:])]
    return Sides(b.trace(b.m, texts, s), b.trace(b.m, captured, s))
