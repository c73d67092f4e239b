"""The known bugs: real ones that somebody made, and common ones that anybody could make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from kvconform.mutants.mutant import Mutant
from kvconform.mutants.planting import planted_in
from kvspec.contract import CHAPTERS
from kvspec.reading.anomalies import anomalies

SECTIONS = (
    *("extra_rows", "missing_rows", "misplaced_rows", "visible_rows", "operations"),
    *("at_scale", "unseen", "unseen_beside", "snapshots", "inputs"),
)
"""The modules of common bugs: the groups of the appendix of anomalies; bugs that begin beyond a size or after a
long life; bugs that show only unobserved or where rows are alike; bugs of several snapshots; bugs that show only
where inputs are not plain."""


def real() -> Iterator[Mutant]:
    """Every real bug that is planted, chapter by chapter."""
    return planted_in("kvconform.mutants.real", *CHAPTERS)


def common() -> Iterator[Mutant]:
    """Every common bug, in the order of the appendix of anomalies."""
    bugs = planted_in("kvconform.mutants.common", *SECTIONS)
    order = list(anomalies())
    return iter(sorted(bugs, key=lambda m: order.index(m.anomaly)))


def demand_planted(mutants: Iterable[Mutant]) -> None:
    """Make each known bug among these once. Raises BadInput for one that cannot be planted: a hunt would take it
    for a cache that dies, and count it as found."""
    for mutant in mutants:
        if mutant.id in known_bugs():
            mutant.adapter()


@cache
def known_bugs() -> dict[str, Mutant]:
    """All bugs that have a name, by their ids: real ones, then common ones."""
    return {m.id: m for m in (*real(), *common())}
