"""All mutants there are, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from kvconform.mutants import controls, fakes
from kvconform.mutants.common import catalogue as common
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.real import catalogue as real
from kvconform.mutants.systematic import kernels, modules

KINDS: dict[str, Callable[[], Iterator[Mutant]]] = {
    "controls": controls.mutants,
    "fakes": fakes.mutants,
    "catalogue": real.mutants,
    "reference": modules.reference,
    "gpu": modules.gpu,
    "anomalies": common.mutants,
    "kernels": kernels.mutants,
}
"""Controls; fakes for the harness itself; real bugs; bugs as anybody could write them; systematic faults of the
reference, of the GPU caches, and of the kernels' text."""


@cache
def planted() -> dict[str, Mutant]:
    """All bugs that have a name, by their ids: real ones, then common ones."""
    return {m.id: m for m in (*real.mutants(), *common.mutants())}
