"""Walks: in few long traces each operation of a kind follows each other one, taken and refused, at many scales.

A walk goes on with the move that followed the one before least often, and gives a refused move as often as one that
is taken. So each pair of operations is met without luck, and each operation happens many times to one cache. The
list model follows, and tells which numbers lie inside and which beyond.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise, product
from random import Random
from typing import Any

from kvconform.generate import geometry_traces, strategies
from kvconform.generate.real_geometry import BOUNDARIES, WITH, Geometry
from kvconform.generate.strategies.walk_moves import LATE, MANY, SMALL, Moves, Numbers, Scale
from kvconform.oracle.follow import ModelledTrace
from kvspec import notation
from kvspec.operations.table import OPEN, RUN, Operation, chapters_of
from kvspec.registry import objects
from kvspec.trace import Trace, replayable

TIMES, SEVERAL = 22, 3
"""How often a small walk does each move, so that late calls are met; and one that does several at once."""

LEAST = 36
"""Moves of a walk at another scale at least; twice as many in a whole run."""

LONGEST, LONGEST_OF_FEW, OF_MANY_MOVES = 800, 400, 240
"""The most moves of a small walk, of one in a run of few traces, and of one there that has too many moves to meet
all pairs of them."""

MOST, UNSEEN = 3, 2
"""Small walks of a kind at most: they end when each pair of moves was met. Then these that nobody looks at."""

AT_ONE_SCALE = 3
"""Walks of a kind at another scale at most: they end when each move was done."""

TOGETHER = 3
"""Moves of a walk that are done while nobody looks."""

FILLS = ("", "alike", "even", "", "edges", "bits", "random", "", "keys_alike", "values_alike")
"""What rows hold, in turn for each move that takes some: rows of their own, at edges, and equal in a part."""


@dataclass(frozen=True)
class Move:
    """Operations that belong together, in the notation, with names in braces for numbers."""

    text: str
    changes: bool
    """Whether it is more than a look, after which another look tells nothing new."""


LOOKS = frozenset(
    (
        *("view", "ask", "askappend", "askrestore", "match", "mask", "plan", "fit", "scribble"),
        *("positions", "peek", "fingerprint", "rotate"),
    )
)


@cache
def moves(kind: str, chapters: frozenset[str]) -> tuple[Move, ...]:
    """Give the moves of a kind that take no more than these chapters."""
    texts = (text for chapter, given in given_by().items() if chapter in chapters for text in given.on(kind))
    return tuple(Move(text, not _looks(text)) for text in texts if _needs(text) <= chapters)


@cache
def given_by() -> dict[str, Moves]:
    """Give the moves of each chapter that has some."""
    return objects(strategies.__name__, "WALKS")


def _looks(text: str) -> bool:
    return {part.split()[0].partition("{")[0] for part in text.split("; ")} <= LOOKS


def _needs(text: str) -> frozenset[str]:
    """The chapters that a move takes, whatever its numbers are."""
    plain = re.sub(r"\{(\w+)\}", lambda name: SOME.get(name[1], "1"), text)
    return frozenset().union(*map(chapters_of, notation.operations(plain)))


SOME = {"fill": "", "refresh": "", "t": "t", "w": "w", "g": "g", "one": "p", LATE: LATE}
"""What stands for names in braces where only the words of a move count; a number for all others."""


@dataclass
class Walks:
    """Walks of a kind at one scale; what they met is counted over all of them."""

    kind: str
    chapters: frozenset[str]
    scale: Scale
    seed: int = 0
    few: bool = False
    """Whether to give no more than a run of few traces has."""

    def __post_init__(self) -> None:
        self._random = Random(f"{self.kind} {self.scale.name} {self.seed}")
        self._moves = moves(self.kind, self.chapters)
        self._pairs, self._times, self._fills = Counter[tuple[int, int]](), Counter[int](), Counter[str]()

    def all(self) -> Iterator[Trace]:
        """Give all walks: small ones until each pair of moves was met, others until each move was done."""
        return self._small() if self.scale is SMALL else self.each_move(2 if self.few else AT_ONE_SCALE)

    def _small(self) -> Iterator[Trace]:
        """Give walks until each pair of moves was met, then some that do several moves without a look."""
        yield from self.each_pair(1 if self.few else MOST)
        yield from (self._walk(turn, TOGETHER) for turn in range(1 if self.few else UNSEEN))

    def _longest(self, together: int) -> int:
        """The moves of a walk: in a small one all pairs of them, and each often, if these are not too many."""
        count = len(self._moves)
        if together > 1:
            return SEVERAL * count
        if self.scale is not SMALL:
            return max(count, LEAST) if self.few else 2 * max(count, LEAST)
        of_few = LONGEST_OF_FEW if count * count <= LONGEST_OF_FEW else OF_MANY_MOVES
        return min(max(TIMES * count, count * count), of_few if self.few else LONGEST)

    def each_pair(self, most: int) -> Iterator[Trace]:
        """Give walks until each move followed each other one, two looks excepted; no more than `most`."""
        wanted = {(a, b) for a, b in product(range(len(self._moves)), repeat=2) if self._tells(a, b)}
        return self._until(most, lambda: wanted <= set(self._pairs))

    def each_move(self, most: int) -> Iterator[Trace]:
        """Give walks until each move was done; no more than `most`."""
        return self._until(most, lambda: len(self._times) == len(self._moves))

    def _until(self, most: int, met: Callable[[], bool]) -> Iterator[Trace]:
        for turn in range(most):
            before = len(self._pairs)
            walk = self._walk(turn)
            if len(self._pairs) == before:
                break  # the other moves are never possible at this scale
            yield walk
            if met():
                break

    def _tells(self, before: int, after: int) -> bool:
        return self._moves[before].changes or self._moves[after].changes

    def _walk(self, turn: int, together: int = 1) -> Trace:
        """A walk that is as long as may be replayed; what is cut off was not met."""
        fields, *begins = _sized(self.kind, self.scale, turn)
        begin = [text for text in begins if text and _needs(text) <= self.chapters]
        start = notation.trace(self.kind, fields, "")
        following, done, ends = _Following(start, self.scale, self._random, self._fills), list[int](), [0]
        following.begin(begin)
        for _ in range(self._longest(together)):
            if following.is_short():
                following.begin(begin)
            done.append(self._next(done, following))
            ends.append(len(following.groups))
        kept = len(done)
        if not replayable(following.trace(ends[kept])):
            kept = bisect(range(1, kept), False, key=lambda n: not replayable(following.trace(ends[n])))
        self._forget(done, kept)
        return following.trace(ends[kept], together)

    def _forget(self, done: Sequence[int], kept: int) -> None:
        """Take back what was counted of moves that are not kept."""
        self._times.subtract(done[kept:])
        self._pairs.subtract([*pairwise(done)][max(0, kept - 1) :])
        self._times, self._pairs = +self._times, +self._pairs

    def _next(self, done: Sequence[int], following: _Following) -> int:
        """Do the move that followed the last one least often; if it is not possible now, the next one."""
        last = done[-1] if done else None
        ranks = [(*rank, self._random.random(), i) for i, rank in enumerate(self._ranks(last))]
        chosen = next(i for *_, i in sorted(ranks) if following.move(self._moves[i].text, self._times[i]))
        self._times[chosen] += 1
        self._pairs.update([(last, chosen)] if last is not None else ())
        return chosen

    def _ranks(self, last: int | None) -> Iterator[tuple[int, int]]:
        """Give for each move how often it followed the last one, one more for a look after a look, and how often it
        was done at all."""
        after, times, look = self._pairs.get, self._times.get, last is not None and not self._moves[last].changes
        for i, move in enumerate(self._moves):
            followed = 0 if last is None else after((last, i), 0)
            yield followed + (look and not move.changes), times(i, 0)


MOST_WORK = 1 << 24
"""Products that one operation with queries may take: strict attention in numpy does some ten millions in 100 ms."""


def _sized(kind: str, scale: Scale, turn: int) -> tuple[str, ...]:
    sized = given_by()[kind].sized
    assert sized is not None, f"{kind} says no sizes"
    return sized(scale, turn)


def _numbers(kind: str, session: Any, random: Random) -> Numbers:
    numbers = given_by()[kind].numbers
    assert numbers is not None, f"{kind} says no numbers"
    return numbers(session, random)


class _Following(ModelledTrace):
    """A walk so far, and the list model's view of it."""

    def __init__(self, start: Trace, scale: Scale, random: Random, fills: Counter[str]) -> None:
        super().__init__(start)
        self.start, self.scale, self.random, self.fills = start, scale, random, fills
        self.groups, self.full = list[list[Operation]](), 0

    def numbers(self, turn: int = 0) -> Numbers:
        """Draw the numbers of a move, for the turn that it has: it is given the most rows first."""
        n, few = self.scale.rows[-1 - turn % len(self.scale.rows)], self.random.choice((1, 2, 3))
        own = _numbers(self.start.kind, self.session, self.random)
        return {"n": n, "few": few, "q": self._queries(n, own.get("length", 0))} | self._counts() | own

    def _queries(self, n: int, length: int) -> int:
        """As many queries as rows, if they do not take too long; else fewer."""
        scale = self.scale
        each = scale.batch * scale.layers * 2 * scale.kv_heads * (scale.k_dim + scale.v_dim)
        return max((q for q in (1, *scale.rows) if q <= n and q * (length + q) * each <= MOST_WORK), default=1)

    def _counts(self) -> Numbers:
        heads, batch = self.start.config.kv_heads, self.scale.batch
        return {
            "heads": heads * (2 if 2 * heads <= 16 else 1),
            "m": self.random.choice((1, 3, batch)) if self.scale is SMALL else batch,
        }

    def is_short(self) -> bool:
        """Tell whether a cache that is not small has less than when it began."""
        return self.scale is not SMALL and self._has() < self.full

    def _has(self) -> int:
        drawn = self.numbers()
        return int(drawn["has"] if "has" in drawn else drawn.get("length") or 0)

    def begin(self, texts: Iterable[str]) -> None:
        """Do what makes a cache as long as the scale wants it."""
        enough = 0 < self.scale.length <= self.numbers().get("length", 0)
        for text in texts:
            if not (enough and text.startswith(RUN.name)):
                self._do(text)
        has = self._has()
        self.full = self.full if self.full and self.scale.length else has

    def move(self, text: str, turn: int) -> bool:
        """Do a move. Tell whether it is possible: whether all it names is there."""
        try:
            filled = text.format_map(self.numbers(turn) | {"fill": self._fill(text)})
        except KeyError:
            return False
        self._do(filled)
        return True

    def _fill(self, text: str) -> str:
        if "{fill}" not in text:
            return ""
        self.fills[text] += 1
        fill = FILLS[(self.fills[text] + len(text)) % len(FILLS)]
        return f" fill={fill}" if fill else ""

    def _do(self, text: str) -> None:
        ops = notation.operations(text)
        for op in ops:
            self.follow(op)
        self.groups.append([*ops])

    def trace(self, groups: int, together: int = 1) -> Trace:
        """Give the trace of so many groups; in runs of so many operations, if there are to be more than one."""
        kept = self.groups[:groups]
        ops = _joined(kept, together) if together > 1 else (op for group in kept for op in group)
        return replace(self.start, ops=tuple(ops))


def _joined(groups: list[list[Operation]], together: int) -> Iterator[Operation]:
    """Join moves into runs. A run holds no run, no look, and does not open a cache."""
    run = list[Operation]()
    for group in groups:
        plain = not any(op["op"] in (RUN.name, OPEN.name) or op["op"] in LOOKS for op in group)
        run += group if plain else []
        if not plain or len(run) >= together:
            yield from _run(run)
            run = []
        yield from () if plain else group
    yield from _run(run)


def _run(ops: list[Operation]) -> Iterator[Operation]:
    if ops:
        yield {"op": RUN.name, "times": 1, "ops": ops} if len(ops) > 1 else ops[0]


def done(walks: Sequence[Sequence[Trace]], layers: int, batch: int) -> frozenset[str]:
    """Give the operations that walks do at each of the `WALKED` scales. Give none if more layers or more sequences
    are wanted than they have."""
    fewer = {trace.config.layers or layers for trace in walks[-1]} - {layers, MANY.layers}
    taken = (frozenset(chain.from_iterable(map(_taken, traces))) for traces in walks)
    few = 1 < max(trace.config.batch for trace in chain.from_iterable(walks)) < batch
    return frozenset() if few or (fewer and layers > MANY.layers) else frozenset.intersection(*taken)


def _taken(trace: Trace) -> Iterator[str]:
    """The operations of a trace that are taken, without those that nobody looked at, and those that open caches."""
    following, outcomes = ModelledTrace(trace), trace.frozen.outcomes if trace.frozen else None
    for i, op in enumerate(trace.ops):
        result = outcomes[i].result if outcomes else following.follow(op).result
        if result == "ok" and op["op"] not in (RUN.name, OPEN.name):
            yield op["op"]


def left_over_by(
    walks: Sequence[Sequence[Trace]], kind: str, geometry: Geometry, chapters: frozenset[str]
) -> tuple[Trace, ...]:
    """The same for these walks, those of a run of few traces at each of the `WALKED` scales."""
    many = geometry.kv_heads >= BOUNDARIES["kv_heads"][-1]
    options = geometry.kv_heads > 1 and geometry.k_dim >= BOUNDARIES["k_dim"][-1]
    walked = frozenset() if many else done(walks, geometry.layers, geometry.batch)
    return geometry_traces.traces(kind, geometry, walked if options else walked | {WITH}, chapters)
