"""Abilities that operations take because of what the cache then holds.

A query that sees nothing, a mask of a wrong width: no operation says so by itself. Records name such abilities by
clauses, and the list model, which follows the trace, cites these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvconform.oracle.expected import Expected
from kvconform.oracle.follow import ModelledTrace
from kvspec.contract import CHAPTERS, Description
from kvspec.operations.abilities import needed_by_clauses
from kvspec.operations.table import CHAPTER_OF, Operation, parts_of
from kvspec.registry import Needed, named_abilities
from kvspec.trace import Trace

BY_CLAUSES = {c: frozenset(a.name for a in named_abilities(c) if a.clauses) for c in CHAPTERS}
"""The abilities of each chapter that are named by clauses."""


def needed_by_state(trace: Trace, chapters: Sequence[str] = CHAPTERS) -> list[tuple[frozenset[Needed], bool]]:
    """Give for each operation of a trace the abilities of these chapters that it takes by what the cache holds, and
    whether it is refused. All operations of a run take what one of them takes."""
    about = {c for c in chapters if BY_CLAUSES[c]}
    if not any(CHAPTER_OF.get(part["op"]) in about for op in trace.ops for part in parts_of(op)):
        return [(frozenset(), False)] * len(trace.ops)
    modelled = ModelledTrace(trace)
    return [_needed(op, modelled.follow(op)) for op in trace.ops]


def _needed(op: Operation, step: Expected) -> tuple[frozenset[Needed], bool]:
    needs = frozenset(need for part in parts_of(op) for need in needed_by_clauses(part, step.cites))
    return needs, step.result == "refused"


def lacking_by_state(trace: Trace, adapter: Description) -> Iterator[tuple[int, list[str], bool]]:
    """Find operations that take abilities which the adapter does not claim, because of what the cache holds. Give
    the number of each, the abilities, and whether the operation is refused."""
    chapters = [c for c, claim in adapter.chapters.items() if BY_CLAUSES[c].intersection(claim.without)]
    for number, (needs, refused) in enumerate(needed_by_state(trace, chapters) if chapters else ()):
        if lacks := sorted(adapter.lacks(needs)):
            yield number, lacks, refused
