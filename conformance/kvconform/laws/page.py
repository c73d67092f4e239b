"""The laws of paged caches: two traces each, and what sequences hold at the end of them.

Every trace ends with an append of no rows, after which everything is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from kvconform.judge import visible
from kvconform.judge.trial import Outcome
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Array, Config
from kvspec.operations.notation import operation
from kvspec.rows import settled
from kvspec.trace import Trace

PAGES = 64
"""Pages of a pool: more than the rows that are drawn."""

MOST_ROWS = 48
"""Rows that are appended to all sequences of a trace together."""

Sides = tuple[Trace, Trace]


def roomy(config: Config) -> Config:
    """A pool in which nothing runs out."""
    return config.changed(pages=PAGES)


@dataclass
class _Life:
    """Operations in the making, none of which is refused; of each sequence its length, and what would make it
    alone."""

    draw: st.DrawFn
    ops: list[str] = field(default_factory=list)
    lengths: dict[int, int] = field(default_factory=dict)
    alone: dict[int, list[str]] = field(default_factory=dict)
    left: int = MOST_ROWS

    def live(self, count: int, *kinds: str) -> None:
        """A sequence, and `count` operations of these kinds."""
        self.admit()
        for _ in range(count):
            getattr(self, self.draw(st.sampled_from(kinds)))()

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
        """One that shares rows."""
        parent = self.some()
        n = self.number(0, self.lengths[parent])
        made, new = [*self.alone[parent], f"truncate 0 {n}"], self.admit()
        self.ops[-1], self.lengths[new], self.alone[new] = f"fork {parent} {n}", n, made

    def append(self) -> None:
        """Rows, as long as there are any."""
        sequence, n = self.some(), min(self.left, self.number(0, 5))
        self.left -= n
        self.ops.append(f"append {n} sequence={sequence}")
        self.lengths[sequence] += n
        self.alone[sequence].append(f"append {n}")

    def truncate(self) -> None:
        """Fewer rows."""
        sequence = self.some()
        self.lengths[sequence] = to = self.number(0, self.lengths[sequence])
        self.ops.append(f"truncate {sequence} {to}")
        self.alone[sequence].append(f"truncate 0 {to}")

    def drop(self) -> None:
        """A sequence fewer; one stays."""
        if len(self.lengths) > 1:
            sequence = self.some()
            self.ops.append(f"drop {sequence}")
            del self.lengths[sequence], self.alone[sequence]


LIVES = (*("append",) * 4, *("fork",) * 2, "truncate", "drop", "admit")
"""What lives are made of."""


def _trace(config: Config, texts: Sequence[str]) -> Trace:
    return Trace("page", config, tuple(map(operation, (*texts, "append 0"))))


def _drawn(draw: st.DrawFn) -> _Life:
    life = _Life(draw)
    life.live(draw(st.integers(0, 14)), *LIVES)
    return life


def page_size(draw: st.DrawFn, config: Config) -> Sides:
    """Pages of two sizes."""
    life, other = _drawn(draw), draw(st.sampled_from((1, 2, 3, 4, 5, 16, 64)))
    return _trace(roomy(config), life.ops), _trace(roomy(config.changed(page_size=other)), life.ops)


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
            case "append":
                length += n
                paged.append(f"append {n} fill=random")
                growing.append(f"append {n} fill=random")
            case _:
                length += n
                how = draw(st.sampled_from(("", " splits=2", " through causal & window=3")))
                paged.append(f"attend {n}{how}")
                growing.append(f"attend {n}{how}")
    left = config.changed(pages=PAGES * (forks + 1))
    right = config.changed(page_size=None, pages=None, debug=None)
    return _trace(left, paged), Trace("growing", right, tuple(map(operation, (*growing, "view"))))


def alone(draw: st.DrawFn, config: Config) -> Sides:
    """A sequence among others, which are dropped in the end, or by itself."""
    life = _drawn(draw)
    sequence = life.some()
    others = [f"drop {each}" for each in sorted(life.lengths) if each != sequence]
    by_itself = ["admit", *life.alone[sequence]]
    return _trace(roomy(config), [*life.ops, *others]), _trace(roomy(config), by_itself)


def order(draw: st.DrawFn, config: Config) -> Sides:
    """Drops and truncates in one order and in the opposite one; then rows for the sequence that remains."""
    life = _drawn(draw)
    life.fork()
    life.fork()
    stays = life.some()
    ends = [
        draw(st.sampled_from((f"drop {sequence}", f"truncate {sequence} {length // 2}")))
        for sequence, length in draw(st.permutations(sorted(life.lengths.items())))
        if sequence != stays
    ]
    after = [f"append 3 sequence={stays}", "admit"]
    forth, back = (_trace(roomy(config), [*life.ops, *each, *after]) for each in (ends, ends[::-1]))
    return forth, back


def differ(sides: Sequence[Trace], seen: Sequence[Outcome]) -> str:
    """How the two ends differ; empty if they do not. Rows are known by their position in the list model."""
    for trace, outcome in zip(sides, seen, strict=True):
        if len(outcome.steps) < len(trace.ops):
            return f"{trace.profile}: it failed at step {len(outcome.steps)}"
    if sides[1].profile == "growing":
        return _from_contiguous(sides, seen)
    left, right = map(_shown, sides, seen)
    return "" if left == right else f"the left side leaves {left}, the right side {right}"


def _shown(trace: Trace, seen: Outcome) -> list[str]:
    """The rows of every sequence in use."""
    sequences = enumerate(at_the_end(trace).caches["A"].all)
    arrays = seen.steps[-1][1].arrays
    return [_positions(arrays, f"state.{s}", seen, one.rows) for s, one in sequences if one is not None]


def _positions(arrays: Mapping[str, Array | None], name: str, seen: Outcome, expected: Sequence[int]) -> str:
    """Positions of the rows that were found."""
    found = visible.one_name_each(arrays.get(f"{name}.k"), arrays.get(f"{name}.v"), seen.book)
    if found is None:
        return "keys and values that do not agree"
    return " ".join(str(expected.index(s)) if s in expected else "?" for s in found[0]) or "nothing"


def _from_contiguous(sides: Sequence[Trace], seen: Sequence[Outcome]) -> str:
    """How a paged sequence differs from a growing cache: in its rows, or, in strict attention, in an output."""
    pool, cache = (at_the_end(trace).caches["A"] for trace in sides)
    left = _positions(seen[0].steps[-1][1].arrays, "state.0", seen[0], pool.one(0).rows)
    right = _positions(seen[1].steps[-1][1].arrays, "view", seen[1], cache.tokens)
    if left != right:
        return f"the left side leaves {left}, the right side {right}"
    if {outcome.level for outcome in seen} != {"storage"}:
        return ""
    outputs = [[step.arrays["output"] for _, step in outcome.steps if "output" in step.arrays] for outcome in seen]
    for i, (a, b) in enumerate(zip(*outputs, strict=True)):
        if a is None or b is None or settled(a).tobytes() != settled(b).tobytes():
            return f"attend number {i + 1} gives other bits through pages than over contiguous rows"
    return ""
