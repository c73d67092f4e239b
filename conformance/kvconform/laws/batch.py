"""The laws of batches. Two ends are compared by what one sequence holds.

Both sides end with a rollback that does nothing, and names the sequence to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from hypothesis import strategies as st

from kvconform.generate.strategies import batch
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import Results, Sides, positions, register, trace
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config
from kvspec.trace import Trace

SEQUENCES = 4
"""Sequences of a batch, at most."""


def difference(sides: Sides, results: Results) -> str:
    """How the two ends differ; empty if they do not. Rows are known by their position in the list model."""
    left, right = map(_end, sides, results)
    return "" if left == right else f"after the left side the sequence holds {left}, after the right side {right}"


def _end(side: Trace, result: TrialResult) -> str:
    """The rows of the sequence that was named last, layer by layer."""
    if len(result.steps) < len(side.ops):
        return f"nothing: it failed at step {len(result.steps)}"
    sequence = side.ops[-1]["sequence"]
    layers = enumerate(at_the_end(side).caches["A"].batched.all[sequence].rows)
    return "; ".join(positions(result, f"batch.{layer}.{sequence}", rows) for layer, rows in layers)


class _Batch(NamedTuple):
    """Rows in a store, a batch of m sequences, and operations on the batch. Each operation has its sequence (None:
    all) and its words."""

    config: Config
    m: int
    stored: int
    ops: list[tuple[int | None, str]]

    def texts(self) -> list[str]:
        """The words of all operations."""
        return [text.format(q) for q, text in self.ops]

    def trace(self, m: int, texts: Sequence[str], sequence: int) -> Trace:
        """These operations on a batch of m, with a last one that shows a sequence."""
        last = f"rollback {self.config.max_len} sequence={sequence}"
        return trace("store", self.config, f"append {self.stored}", f"batch {m}", *texts, last)


def _built(draw: st.DrawFn, config: Config) -> _Batch:
    """Draw operations that are not refused."""
    m, count, room = draw(st.integers(1, SEQUENCES)), draw(st.integers(0, 10)), config.max_len or 1
    batch, lengths = _Batch(config, m, draw(st.integers(1, room)), []), [0] * m
    for _ in range(count):
        kind = draw(st.sampled_from(("step", "step", "scatter", "scatter", "rollback", "reset")))
        if kind == "step" and max(lengths) < room:
            batch.ops.append((None, "step"))
            lengths = [n + 1 for n in lengths]
        elif kind == "reset":
            batch.ops.append((None, "resetbatch"))
            lengths = [0] * m
        elif kind != "step":
            s = draw(st.integers(0, m - 1))
            lengths[s] = draw(st.integers(0, batch.stored if kind == "scatter" else lengths[s]))
            words = f"scatter {{}} {lengths[s]}" if kind == "scatter" else f"rollback {lengths[s]} sequence={{}}"
            batch.ops.append((s, words))
    return batch


law = partial(register, needs=("store", "batch"), configs=batch.configs, compare=difference)


@law("BATCH-28")
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """A sequence among others, or by itself."""
    b = _built(draw, config)
    s = draw(st.integers(0, b.m - 1))
    by_itself = [text.format(0) for q, text in b.ops if q in (None, s)]
    return Sides(b.trace(b.m, b.texts(), s), b.trace(1, by_itself, 0))


@law("BATCH-29")
def layers(draw: st.DrawFn, config: Config) -> Sides:
    """A scatter of all layers, or of each by itself in any order."""
    b = _built(draw, config)
    before, s, n = b.texts(), draw(st.integers(0, b.m - 1)), draw(st.integers(0, b.stored))
    each = [f"scatter {s} {n} layer={layer}" for layer in draw(st.permutations(range(config.layers or 1)))]
    return Sides(b.trace(b.m, [*before, f"scatter {s} {n}"], s), b.trace(b.m, [*before, *each], s))


@law("BATCH-30")
def replays(draw: st.DrawFn, config: Config) -> Sides:
    """Steps, or replays of one that was captured at any time before."""
    b = _built(draw, config)
    texts, s = b.texts(), draw(st.integers(0, b.m - 1))
    at = draw(st.integers(0, len(texts)))
    captured = [*texts[:at], "capture w", *("replay w" if x == "step" else x for x in texts[at:])]
    return Sides(b.trace(b.m, texts, s), b.trace(b.m, captured, s))
