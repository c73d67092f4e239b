"""The laws of paged caches. Two ends are compared by what sequences hold.

Every side ends with an append of no rows, after which everything is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import page
from kvconform.judge.trial_result import TrialResult
from kvconform.laws import attention
from kvconform.laws.law import Results, Sides, of_ends, positions, register, trace, unequal
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config
from kvspec.rows.fills import settled
from kvspec.trace import Trace

PAGES = 64
"""Pages of a pool: more than the rows that are drawn."""

MOST_ROWS = 48
"""Rows that are appended to all sequences of a trace together."""


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the rows of all sequences differ in the end; empty if they do not. Rows are known by their position in
    the list model. Where outputs alone are shown, those of the same operations are compared."""
    if not any(name.startswith("state.") for r in results for name in r.steps[-1][1].arrays):
        return attention.difference(sides, results) if _alike(sides) else ""
    return unequal(*map(_sequences, sides, results))


def _alike(sides: Sides) -> bool:
    """Tell whether both sides attend to the same rows, and do."""
    left, right = sides
    return left.ops == right.ops and any(op["op"] == "attend" for op in left.ops)


def _sequences(side: Trace, result: TrialResult) -> list[str]:
    """The rows of every sequence in use."""
    sequences = enumerate(at_the_end(side).caches["A"].all)
    return [positions(result, f"state.{s}", one.rows) for s, one in sequences if one is not None]


@of_ends
def _from_contiguous(sides: Sides, results: Results) -> str:
    """How a paged sequence differs from a growing cache: in its rows, or, in strict attention, in an output."""
    pool, cache = (at_the_end(side).caches["A"] for side in sides)
    left = positions(results[0], "state.0", pool.one(0).rows)
    right = positions(results[1], "view", cache.tokens)
    exact = {result.level for result in results} == {"storage"}
    return unequal(left, right) or (_other_bits(results) if exact else "")


def _other_bits(results: Results) -> str:
    """The first output that differs in its bits between the two sides; empty if none does."""
    outputs = [[step.arrays["output"] for _, step in r.steps if "output" in step.arrays] for r in results]
    for i, (a, b) in enumerate(zip(*outputs, strict=True)):
        if a is None or b is None or settled(a).tobytes() != settled(b).tobytes():
            return f"attend number {i + 1} gives other bits through pages than over contiguous rows"
    return ""


@dataclass
class _TraceBuilder:
    """Draws operations that are not refused. Knows of each sequence its length, and what would make it alone."""

    draw: st.DrawFn
    ops: list[str] = field(default_factory=list)
    lengths: dict[int, int] = field(default_factory=dict)
    alone: dict[int, list[str]] = field(default_factory=dict)
    left: int = MOST_ROWS

    def fill(self, count: int) -> None:
        """A sequence, and `count` operations."""
        self.admit()
        for _ in range(count):
            getattr(self, self.draw(st.sampled_from(KINDS)))()

    def number(self, low: int, high: int) -> int:
        """One of these."""
        return self.draw(st.integers(low, high))

    def some(self) -> int:
        """A sequence in use."""
        return self.draw(st.sampled_from(sorted(self.lengths)))

    def admit(self) -> int:
        """A new sequence."""
        new = next(n for n in range(len(self.lengths) + 1) if n not in self.lengths)
        self.ops.append("admit")
        self.lengths[new], self.alone[new] = 0, []
        return new

    def fork(self) -> None:
        """A new sequence that shares rows."""
        parent = self.some()
        n = self.number(0, self.lengths[parent])
        alone, new = [*self.alone[parent], f"truncate 0 {n}"], self.admit()
        self.ops[-1], self.lengths[new], self.alone[new] = f"fork {parent} {n}", n, alone

    def append(self) -> None:
        """Rows, as long as there are any."""
        sequence, n = self.some(), min(self.left, self.number(0, 5))
        self.left -= n
        self.ops.append(f"append {n} sequence={sequence}")
        self.lengths[sequence] += n
        self.alone[sequence].append(f"append {n}")

    def truncate(self) -> None:
        """Fewer rows, or as many."""
        sequence = self.some()
        self.lengths[sequence] = to = self.number(0, self.lengths[sequence])
        self.ops.append(f"truncate {sequence} {to}")
        self.alone[sequence].append(f"truncate 0 {to}")

    def drop(self) -> None:
        """One sequence less; the last one stays."""
        if len(self.lengths) > 1:
            sequence = self.some()
            self.ops.append(f"drop {sequence}")
            del self.lengths[sequence], self.alone[sequence]


KINDS = (*("append",) * 4, *("fork",) * 2, "truncate", "drop", "admit")
"""The operations that are drawn; one that is listed more often is drawn more often."""


def _built(draw: st.DrawFn) -> _TraceBuilder:
    builder = _TraceBuilder(draw)
    builder.fill(draw(st.integers(0, 14)))
    return builder


def _trace(config: Config, texts: Sequence[str], pages: int = PAGES) -> Trace:
    """A trace in a pool in which nothing runs out."""
    return trace("page", config.changed(pages=pages), *texts, "append 0")


law = partial(register, configs=page.configs, compare=difference)


@law("PAGE-43", needs=("page",))
def page_size(draw: st.DrawFn, config: Config) -> Sides:
    """Pages of two sizes."""
    b, other = _built(draw), draw(st.sampled_from((1, 2, 3, 4, 5, 16, 64)))
    return Sides(_trace(config, b.ops), _trace(config.changed(page_size=other), b.ops))


@law("PAGE-44", needs=("page", "growing", "attention"), compare=_from_contiguous)
def contiguous(draw: st.DrawFn, config: Config) -> Sides:
    """One sequence, forked in between, or a growing cache; both attend."""
    paged, growing, length, forks = ["admit"], list[str](), 0, 0
    for _ in range(draw(st.integers(1, 8))):
        n = draw(st.integers(0, 5))
        match draw(st.sampled_from(("append", "attend", "attend", "truncate", "fork"))):
            case "truncate":
                length = draw(st.integers(0, length))
                paged.append(f"truncate 0 {length}")
                growing.append(f"rewind {length}")
            case "fork":
                paged.append(f"fork 0 {draw(st.integers(0, length))}")
                forks += 1
            case kind:
                length += n
                hows = ("", " splits=2", " through causal & window=3")
                text = f"append {n} fill=random" if kind == "append" else f"attend {n}{draw(st.sampled_from(hows))}"
                paged.append(text)
                growing.append(text)
    right = config.changed(page_size=None, pages=None, debug=None)
    return Sides(_trace(config, paged, PAGES * (forks + 1)), trace("growing", right, *growing, "view"))


@law("PAGE-45", needs=("page",))
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """A sequence among others, which are dropped in the end, or by itself."""
    b = _built(draw)
    sequence = b.some()
    others = [f"drop {each}" for each in sorted(b.lengths) if each != sequence]
    return Sides(_trace(config, [*b.ops, *others]), _trace(config, ["admit", *b.alone[sequence]]))


@law("PAGE-46", needs=("page",))
def order(draw: st.DrawFn, config: Config) -> Sides:
    """Drops and truncates in one order and in the opposite one; then rows for the sequence that remains."""
    b = _built(draw)
    b.fork()
    b.fork()
    stays = b.some()
    ends = [
        draw(st.sampled_from((f"drop {sequence}", f"truncate {sequence} {length // 2}")))
        for sequence, length in draw(st.permutations(sorted(b.lengths.items())))
        if sequence != stays
    ]
    after = [f"append 3 sequence={stays}", "admit"]
    return Sides(_trace(config, [*b.ops, *ends, *after]), _trace(config, [*b.ops, *ends[::-1], *after]))
