"""The laws of batches: two traces each, and what a sequence holds at the end of them.

Both traces end with a rollback that does nothing, and names the sequence to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from kvconform.judge import visible
from kvconform.judge.trial import Outcome
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config
from kvspec.operations.notation import operation
from kvspec.trace import Trace

SEQUENCES = 4
"""Sequences of a batch, at most."""

Texts = list[str]


@dataclass
class _Drawing:
    """Operations in the making, none of which is refused: of which sequence (None: of all), and the words."""

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
        """A row for each, where there is room."""
        if max(self.lengths) < (self.config.max_len or 1):
            self.ops.append((None, "step"))
            self.lengths = [n + 1 for n in self.lengths]

    def scatter(self) -> None:
        """Some rows into one."""
        s, n = self.number(0, self.m - 1), self.number(0, self.stored)
        self.ops.append((s, f"scatter {{}} {n}"))
        self.lengths[s] = n

    def rollback(self) -> None:
        """Of one."""
        s = self.number(0, self.m - 1)
        to = self.number(0, self.lengths[s])
        self.ops.append((s, f"rollback {to} sequence={{}}"))
        self.lengths[s] = to

    def reset(self) -> None:
        """Of all."""
        self.ops.append((None, "resetbatch"))
        self.lengths = [0] * self.m


def _drawn(draw: st.DrawFn, config: Config) -> _Drawing:
    drawing = _Drawing(draw, config, draw(st.integers(1, SEQUENCES)))
    drawing.fill(draw(st.integers(0, 10)))
    return drawing


def _trace(drawing: _Drawing, m: int, texts: Sequence[str], sequence: int) -> Trace:
    last = f"rollback {drawing.config.max_len} sequence={sequence}"
    begin = (f"append {drawing.stored}", f"batch {m}")
    return Trace("store", drawing.config, tuple(map(operation, (*begin, *texts, last))))


def alone(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """A sequence among others, or by itself."""
    drawing = _drawn(draw, config)
    s = drawing.number(0, drawing.m - 1)
    among = _texts(drawing)
    by_itself = [text.format(0) for q, text in drawing.ops if q in (None, s)]
    return _trace(drawing, drawing.m, among, s), _trace(drawing, 1, by_itself, 0)


def layers(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """A scatter of all layers, or of each by itself in any order."""
    drawing = _drawn(draw, config)
    before, s, n = _texts(drawing), drawing.number(0, drawing.m - 1), drawing.number(0, drawing.stored)
    order = draw(st.permutations(range(config.layers or 1)))
    one, each = [*before, f"scatter {s} {n}"], [*before, *(f"scatter {s} {n} layer={layer}" for layer in order)]
    return _trace(drawing, drawing.m, one, s), _trace(drawing, drawing.m, each, s)


def replays(draw: st.DrawFn, config: Config) -> tuple[Trace, Trace]:
    """Steps, or replays of one that was captured at any time before."""
    drawing = _drawn(draw, config)
    texts, s = _texts(drawing), drawing.number(0, drawing.m - 1)
    at = drawing.number(0, len(texts))
    captured = [*texts[:at], "capture w", *("replay w" if x == "step" else x for x in texts[at:])]
    return _trace(drawing, drawing.m, texts, s), _trace(drawing, drawing.m, captured, s)


def _texts(drawing: _Drawing) -> Texts:
    return [text.format(q) for q, text in drawing.ops]


def differ(sides: Sequence[Trace], seen: Sequence[Outcome]) -> str:
    """How the two ends differ; empty if they do not. Rows are known by their position in the list model."""
    left, right = (_end(trace, outcome) for trace, outcome in zip(sides, seen, strict=True))
    return "" if left == right else f"after the left side the sequence holds {left}, after the right side {right}"


def _end(trace: Trace, seen: Outcome) -> str:
    """What the sequence named last holds, layer by layer."""
    if len(seen.steps) < len(trace.ops):
        return f"nothing: it failed at step {len(seen.steps)}"
    sequence, arrays = trace.ops[-1]["sequence"], seen.steps[-1][1].arrays
    expected = _rows(trace, sequence)
    names = [f"batch.{layer}.{sequence}" for layer in range(len(expected))]
    found = [visible.one_name_each(arrays.get(f"{n}.k"), arrays.get(f"{n}.v"), seen.book) for n in names]
    return "; ".join(_shown(f, e) for f, e in zip(found, expected, strict=True))


def _shown(found: list[list[int]] | None, expected: list[int]) -> str:
    """Positions of the rows found."""
    if found is None:
        return "keys and values that do not agree"
    return " ".join(str(expected.index(s)) if s in expected else "?" for s in found[0]) or "nothing"


def _rows(trace: Trace, sequence: int) -> list[list[int]]:
    """The rows of a sequence in each layer, by the list model."""
    rows: list[list[int]] = at_the_end(trace).caches["A"].batch.all[sequence].rows
    return rows
