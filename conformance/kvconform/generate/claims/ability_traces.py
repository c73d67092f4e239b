"""Traces that show an ability: the beginnings of worked examples that end with an operation which takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from kvconform.generate.claims.needed_by_state import needed_by_state
from kvspec.chapters.record import Ability
from kvspec.operations.abilities import needed, needed_to_open
from kvspec.operations.table import OPEN, TAKES_ROWS, cache_of
from kvspec.reading.clauses import index
from kvspec.registry import CORE, KINDS, RECORDS, Needed, abilities, named_abilities, opened
from kvspec.trace import Trace, opening

LONG = 4
"""Operations of a trace that may show more than one thing."""


@dataclass(frozen=True)
class AbilityTrace:
    """A trace, and the abilities that it takes, each with its chapter."""

    trace: Trace
    takes: frozenset[Needed]
    clause: str = ""
    """That of the worked example that it begins."""
    refused: bool = False
    """Whether its last operation is to be refused."""

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """Sort the best first: traces with rows in the cache, with few abilities, and short. Equals stay in clause
        order."""
        rows = any(op["op"] in TAKES_ROWS and op.get("n") != 0 for op in self.trace.ops)
        return not rows, len(self.takes), len(self.trace.ops) > LONG


@cache
def ability_traces() -> Mapping[Needed, list[AbilityTrace]]:
    """Give for each ability the traces that show it, the best first; and those of `first_operation`."""
    found = dict[Needed, list[AbilityTrace]]()
    for example in (e for clause in index().values() for e in clause.examples):
        for ability, trace in _beginnings(example.trace, example.clause):
            found.setdefault(ability, []).append(trace)
    for kind in KINDS:
        rows = min(found[first_operation(kind)], key=lambda each: each.rank)
        for named in named_abilities(kind):
            found.setdefault((kind, named.name), []).extend(_opened(rows, named))
    return {ability: sorted(traces, key=lambda each: each.rank) for ability, traces in found.items()}


def first_operation(kind: str) -> Needed:
    """Give the operation by which rows come into caches of a kind: no cache is without it."""
    own = RECORDS[kind].operations
    return kind, CORE[0] if opened(kind).sequence or not own else own[0].name


@cache
def named_by(ability: Needed) -> tuple[str, ...]:
    """Give the clauses by which a record names an ability, or none for most."""
    return next((a.clauses for a in named_abilities(ability[0]) if a.name == ability[1]), ())


@cache
def _known(chapter: str) -> frozenset[str]:
    return frozenset(abilities(chapter))


def _beginnings(trace: Trace, clause: str) -> Iterator[tuple[Needed, AbilityTrace]]:
    """Give each beginning of a trace for every ability that its last operation takes. If this operation is on the
    first cache, give it also for the abilities that opening this cache takes. Only examples of a clause show an
    ability that is named by the clause."""
    caches = {"A": (trace.kind, trace.config)}
    opens = frozenset(needed_to_open(trace.kind, trace.config))
    takes = opens | {first_operation(trace.kind)}
    yield from ((ability, AbilityTrace(trace.cut(0), opens)) for ability in opens)
    for n, (op, (by_state, refused)) in enumerate(zip(trace.ops, needed_by_state(trace), strict=True), 1):
        if op["op"] == OPEN.name:
            caches[cache_of(op)] = opening(trace, op)
        if cache_of(op) not in caches:
            return
        own = frozenset(needed(op, *caches[cache_of(op)])) | by_state
        takes |= {(chapter, name) for chapter, name in own if name in _known(chapter)}
        last = AbilityTrace(trace.cut(n), takes, clause, refused)
        shown = own | opens if cache_of(op) == "A" else own
        yield from ((ability, last) for ability in shown if clause in (named_by(ability) or (clause,)))


def _opened(shortest: AbilityTrace, ability: Ability) -> Iterator[AbilityTrace]:
    """Give a trace that opens a cache as no worked example does: with a size above 1, or of the ability's value."""
    trace, size = shortest.trace, 2 if ability.value is None else ability.value
    takes = shortest.takes | {(trace.kind, ability.name)}
    if ability.config and not ability.like:
        yield AbilityTrace(Trace(trace.kind, trace.config.changed(**{ability.config: size}), trace.ops), takes)
    if OPEN.name in ability.operations:
        another = {"op": OPEN.name, "cache": "B", ability.argument: size}
        yield AbilityTrace(Trace(trace.kind, trace.config, (*trace.ops, another)), takes)
