"""Other forms of a trace that was drawn. It is performed while nobody looks, with rows that are alike, with inputs
in other forms, or at the geometry of a released model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from random import Random
from types import MappingProxyType
from zlib import crc32

from kvconform.generate.amounts import ALIKE, BLIND, GEOMETRY, INPUTS
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.real_geometry import GEOMETRIES, MOST_WORK, at, beyond, work
from kvspec.contract import Description
from kvspec.geometry import Config
from kvspec.masks import Explicit, from_json
from kvspec.notation import sentence
from kvspec.operations.arguments import ALIKE as ALIKE_FILLS
from kvspec.operations.arguments import IN_RUNS
from kvspec.operations.input_forms import INPUTS as FORMS
from kvspec.operations.table import ARGUMENTS, RUN, Operation, argument, cache_of, parts_of, takes_rows
from kvspec.registry import CACHES
from kvspec.trace import Trace, opening

LOOKS = (
    *("view", "ask", "askappend", "askrestore", "mask", "plan", "fit"),
    *("scribble", "positions", "gather", "peek", "fingerprint"),
)
"""Operations that only look: an engine may do what it deferred because of them."""


def blind(trace: Trace) -> Trace:
    """The same trace in a run, without operations that only look; at its end every cache of one sequence takes a
    row and shows all it has."""
    ops = [op for op in trace.ops if op["op"] not in LOOKS and not _explicit(op)]
    if not ops:
        return trace
    run: Operation = {"op": RUN.name, "times": 1, "ops": ops}
    return Trace(trace.kind, trace.config, (run, *_ends(trace)))


def _explicit(op: Operation) -> bool:
    """Whether it attends through an explicit mask: its width would be that of an unobserved history."""
    return any(isinstance(part, Explicit) for part in from_json(op.get("through", [])))


def _ends(trace: Trace) -> Iterator[Operation]:
    """A row for each cache of one sequence, and a view."""
    kinds = {"A": trace.kind} | {cache_of(op): opening(trace, op)[0] for op in trace.ops if op["op"] == "open"}
    for letter in (letter for letter, kind in kinds.items() if kind in CACHES):
        of = {} if letter == "A" else {"cache": letter}
        yield from ({"op": "append", **of, "n": 1}, {"op": "view", **of})


PARTS = (*ALIKE_FILLS, *IN_RUNS)
ROWS_IN_RUNS, HEADS_IN_RUNS, SEQUENCES_IN_RUNS = IN_RUNS[1:3], IN_RUNS[3:5], IN_RUNS[5:]
"""Neighbours that are equal in their keys or their values; in a head; in a sequence."""

MIXED = ("alike", *PARTS, "legible")
"""What rows become beside each other: whole equal rows most, rows that are equal in a part, rows of their own."""

AGAIN = (3, 2, 2)
"""How often the first operations that take rows are done each: so neighbours are equal over calls too."""


def alike(trace: Trace) -> Trace:
    """Give the same trace with rows that are equal in all sequences and caches, next to each other or at other
    positions. Beside them are rows that are equal in a part. Its first rows are equal, over several calls, and
    neighbours are in the first call of several rows. What has room for few rows has more for these."""
    drawn = Random(crc32(sentence(trace).encode()))
    fills, more, ops = _Fills(drawn, trace.config), 0, list[Operation]()
    for op in trace.ops:
        if not _takes_others(op):
            ops.append(op)
        elif takes_rows(op):
            n = op.get("n") or 0
            given = fills.of(n)
            ops += [{**op, "fill": fill} for fill in given]
            more += (len(given) - 1) * n
        else:
            ops.append({**op, "fill": drawn.choice(MIXED)})
    room = {"max_len": trace.config.max_len + more} if trace.config.max_len else {}
    return Trace(trace.kind, trace.config.changed(**room), tuple(ops))


def _takes_others(op: Operation) -> bool:
    """Whether an operation takes rows that may as well be others."""
    fills = "fill" in ARGUMENTS[op["op"]] and argument(op, "fill") in ("legible", "random", "bits")
    return fills and op.get("rope") is None


class _Fills:
    """What rows hold: equal neighbours, then neighbours that are equal in parts, then anything."""

    def __init__(self, drawn: Random, config: Config) -> None:
        self.again, self.first = iter(AGAIN), list(IN_RUNS[:1])
        self.next = chain(IN_RUNS[:1], _parts(drawn, config), _any(drawn))

    def of(self, n: int) -> list[str]:
        """Give a fill for each time that an operation on so many rows is done. Several rows have another each time.
        One row has the same, for its neighbour is the row of the call before."""
        times = next(self.again, 1)
        if n > 1 and self.first:
            return [self.first.pop()] * times
        return [next(self.next) for _ in range(times)] if n > 1 else [next(self.next)] * times


def _parts(drawn: Random, config: Config) -> list[str]:
    """Draw the parts in which neighbours are equal, in any order. These are keys or values. Where there are several
    heads or sequences, the first and the last head and the first sequence are parts too."""
    parts = [drawn.choice(ROWS_IN_RUNS)]
    parts += HEADS_IN_RUNS * (config.kv_heads > 1) + SEQUENCES_IN_RUNS * (config.batch > 1)
    drawn.shuffle(parts)
    return parts


def _any(drawn: Random) -> Iterator[str]:
    """Give any fills, each for some operations."""
    while True:
        yield from [drawn.choice(MIXED)] * drawn.choice((1, 1, 2, 3))


def inputs(trace: Trace) -> Trace:
    """The same trace with its inputs in one form after another. Some traces go unobserved, so that the caller
    overwrites inputs as soon as the call returns."""
    number = count(len(trace.ops))
    seen = trace if len(trace.ops) % 2 else blind(trace)
    return Trace(seen.kind, seen.config, tuple(_in_form(op, number) for op in seen.ops))


def _in_form(op: Operation, number: Iterator[int]) -> Operation:
    other = FORMS[1:]
    if op["op"] == RUN.name:
        return {**op, "ops": [_in_form(part, number) for part in op["ops"]]}
    return {**op, "input": other[next(number) % len(other)]} if "input" in ARGUMENTS[op["op"]] else op


def geometry(trace: Trace) -> Trace:
    """The same trace at the geometry of one of several models; as it was where all of them would cost too much."""
    first = len(trace.ops) % len(GEOMETRIES)
    tried = (at(trace, each) for each in (*GEOMETRIES[first:], *GEOMETRIES[:first]))
    return next((moved for moved in tried if moved and work(moved) <= MOST_WORK), trace)


@dataclass(frozen=True)
class Variation:
    """A form that traces are judged in beside the one that they were drawn in."""

    name: str
    """What the record of a run and the matrix of mutants call the source."""
    of: Callable[[Trace], Trace]
    share: int
    """One trace in this many is judged in this form."""
    tells: Callable[[Trace, Description], bool]
    """Whether a trace in this form tells something of an adapter that the trace as it was drawn does not."""

    def places(self, number: int) -> range:
        """Give the places of those traces, of so many, that are judged in this form: a share, or the last one. The
        first trace is the simplest."""
        return range(self.share - 1, number, self.share) or range(max(0, number - 1), number)

    def some(self, traces: Sequence[Trace], known: Mapping[int, Trace] = MappingProxyType({})) -> Iterator[Trace]:
        """Give this form of a share of the traces. `known`: those that are frozen, by the places of the traces."""
        return (known.get(place) or self.of(traces[place]) for place in self.places(len(traces)))

    def suiting(self, traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
        """Fit traces of this form to an adapter. Leave out those that would tell nothing of it."""
        return (trace for trace in fitted(traces, adapter) if self.tells(trace, adapter))


def _always(trace: Trace, adapter: Description) -> bool:
    return True


def _beyond(trace: Trace, adapter: Description) -> bool:
    """Where the geometry would cost too much, the trace is as it was."""
    return bool(beyond(trace.config))


def _in_other_forms(trace: Trace, adapter: Description) -> bool:
    """Forms that the adapter does not take were left out when the trace was fitted to it."""
    return any("input" in part for op in trace.ops for part in parts_of(op))


VARIATIONS = (
    Variation("blind", blind, BLIND, _always),
    Variation("alike", alike, ALIKE, _always),
    Variation("inputs", inputs, INPUTS, _in_other_forms),
    Variation("geometry", geometry, GEOMETRY, _beyond),
)
"""The forms."""
