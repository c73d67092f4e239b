"""The known bugs: those that were planted because somebody made them, or could."""

from __future__ import annotations

from functools import cache

from kvconform.mutants.common import catalogue as common
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.real import catalogue as real


@cache
def known_bugs() -> dict[str, Mutant]:
    """All bugs that have a name, by their ids: real ones, then common ones."""
    return {m.id: m for m in (*real.mutants(), *common.mutants())}
