"""The known bugs: those that were planted because somebody made them, or could."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from kvconform.mutants.common import extra_rows, misplaced_rows, missing_rows, operations, visible_rows
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.planting import planted_in
from kvspec.reading.anomalies import anomalies
from kvspec.registry import modules


def real() -> Iterator[Mutant]:
    """Every real bug that is planted, chapter by chapter."""
    return planted_in(*modules("kvconform.mutants.real").values())


def common() -> Iterator[Mutant]:
    """Every common bug, in the order of the appendix of anomalies."""
    bugs = planted_in(extra_rows, missing_rows, misplaced_rows, visible_rows, operations)
    order = list(anomalies())
    return iter(sorted(bugs, key=lambda m: order.index(m.anomaly)))


@cache
def known_bugs() -> dict[str, Mutant]:
    """All bugs that have a name, by their ids: real ones, then common ones."""
    return {m.id: m for m in (*real(), *common())}
