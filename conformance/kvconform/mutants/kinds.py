"""All mutants there are, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvconform.mutants import controls, fakes
from kvconform.mutants.common import table
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.real import catalogue
from kvconform.mutants.systematic import kernels, modules

KINDS: dict[str, Callable[[], Iterator[Mutant]]] = {
    "controls": controls.mutants,
    "fakes": fakes.mutants,
    "catalogue": catalogue.mutants,
    "reference": modules.reference,
    "gpu": modules.gpu,
    "anomalies": table.mutants,
    "kernels": kernels.mutants,
}
"""Controls; fakes for the harness itself; real bugs; bugs as anybody could write them; systematic faults of the
reference, of the GPU caches, and of the kernels' text."""
