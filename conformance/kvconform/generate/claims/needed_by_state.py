"""Abilities that operations take because of what the cache then holds.

A query that sees nothing, a mask of a wrong width: no operation says so by itself. Records name such abilities by
clauses, and the list model, which follows the trace, cites these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kvconform.oracle.expected import Expected
from kvconform.oracle.follow import ModelledTrace
from kvspec.contract import CHAPTERS, Description
from kvspec.operations.abilities import needed_by_clauses, owner
from kvspec.operations.table import OPEN, Operation, cache_of, parts_of
from kvspec.registry import Needed, named_abilities
from kvspec.trace import Trace, opening

BY_CLAUSES = {c: frozenset(a.name for a in named_abilities(c) if a.clauses) for c in CHAPTERS}
"""The abilities of each chapter that are named by clauses."""


def needed_by_state(trace: Trace, chapters: Sequence[str] = CHAPTERS) -> list[tuple[frozenset[Needed], bool]]:
    """Give for each operation of a trace the abilities of these chapters that it takes by what the cache holds, and
    whether it is refused. All operations of a run take what one of them takes."""
    about, kinds = {c for c in chapters if BY_CLAUSES[c]}, _kinds(trace)
    asked = {owner(part, kinds[cache_of(part)]) for op in trace.ops for part in parts_of(op)}
    if about.isdisjoint(asked):
        return [(frozenset(), False)] * len(trace.ops)
    modelled = ModelledTrace(trace)
    return [_needed(op, kinds, modelled.follow(op)) for op in trace.ops]


def _kinds(trace: Trace) -> dict[str, str]:
    """The kind of each cache, by its letter."""
    opens = (part for op in trace.ops for part in parts_of(op) if part["op"] == OPEN.name)
    kinds = {cache_of(part): opening(trace, part)[0] for part in opens}
    return defaultdict(lambda: trace.kind, kinds)


def _needed(op: Operation, kinds: Mapping[str, str], step: Expected) -> tuple[frozenset[Needed], bool]:
    parts = [(part, kinds[cache_of(part)]) for part in parts_of(op)]
    needs = frozenset(need for part, kind in parts for need in needed_by_clauses(part, kind, step.cites))
    return needs, step.result == "refused"


def lacking_by_state(trace: Trace, adapter: Description) -> Iterator[tuple[int, list[str], bool]]:
    """Find operations that take abilities which the adapter does not claim, because of what the cache holds. Give
    the number of each, the abilities, and whether the operation is refused."""
    chapters = [c for c, claim in adapter.chapters.items() if BY_CLAUSES[c].intersection(claim.without)]
    for number, (needs, refused) in enumerate(needed_by_state(trace, chapters) if chapters else ()):
        if lacks := sorted(adapter.lacks(needs)):
            yield number, lacks, refused
