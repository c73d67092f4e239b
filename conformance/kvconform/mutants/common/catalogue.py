"""The common bugs, in the order of the appendix of anomalies: one file a section."""

from __future__ import annotations

from collections.abc import Iterator

from kvconform.mutants.common import costs, extra_rows, misplaced_rows, missing_rows, operations, visible_rows
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.planting import planted_in


def mutants() -> Iterator[Mutant]:
    """Every common bug."""
    return planted_in(extra_rows, missing_rows, misplaced_rows, visible_rows, operations, costs)
