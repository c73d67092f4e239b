"""The mutation matrix: what found which mutant, how soon, and whether it named the right clause."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import SOURCES
from kvconform.version import SUITE_VERSION
from kvspec import SPEC_VERSION
from kvspec.notation import sentence
from kvspec.reading import clauses
from kvspec.records.document import Version
from kvspec.records.mutants import Matrix, MutantRecord, result
from kvworkshop.hunt import HuntResult

CODE = re.compile(r" \((?:<[^<>]+>|\w+\.py):\d+\)|\bkv\w+(?:\.\w+)*\.(?=[A-Z])")
"""The place of code in an error message: ` (store.py:37)`, or `kvref.caches.growing.` before a class."""


def made(
    mutants: Sequence[Mutant],
    found: Sequence[HuntResult],
    seconds: float,
    suite: str = "",
    begun: Matrix | None = None,
) -> Matrix:
    """Make the matrix of the mutants that were hunted: now, by the suite of this hash, or before, as was begun."""
    known = {m.id: m for m in begun.mutants} if begun else {}
    by_id = {h.id: h for h in found}
    told = known | {m.id: _entry(m, by_id[m.id]) for m in mutants if m.id in by_id}
    return Matrix(
        spec=Version(version=SPEC_VERSION, hash=clauses.digest()),
        suite=Version(version=SUITE_VERSION, hash=suite),
        seconds=round(seconds + (begun.seconds if begun else 0), 1),
        mutants=[told[m.id] for m in mutants if m.id in told],
        left=sum(m.id not in told for m in mutants),
    )


def _entry(m: Mutant, h: HuntResult) -> MutantRecord:
    return MutantRecord(
        id=m.id,
        bug_class=m.bug_class,
        link=m.link,
        says=m.says,
        clauses=list(m.clauses),
        killed=h.killed,
        by=list(h.shortest.clauses) if h.shortest else [],
        operations=h.operations,
        equivalent=m.equivalent,
        control=("lives" if m.is_control else "dies") if m.bug_class == "control" else "",
        right=h.right,
        sources={s: h.kills[s] is not None for s in SOURCES if s in h.kills},
        trace=sentence(h.shortest.trace) if h.shortest else "",
        message=movable(h.shortest.message) if h.shortest else "",
        seconds=round(h.seconds, 3),
    )


def movable(message: str) -> str:
    """A message without files, lines and modules: it is frozen, and code may move."""
    return CODE.sub("", message)


def wrong(matrix: Matrix) -> list[str]:
    """The ids of the mutants with a wrong outcome."""
    return [m.id for m in matrix.mutants if result(m).isupper()]
