"""All mutants there are, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvconform.mutants import catalogue, controls, kernels, systematic
from kvconform.mutants.mutant import Mutant

KINDS: dict[str, Callable[[], Iterator[Mutant]]] = {
    "controls": controls.mutants,
    "catalogue": catalogue.mutants,
    "reference": systematic.reference,
    "gpu": systematic.gpu,
    "kernels": kernels.mutants,
}
"""Controls; real bugs; systematic faults of the reference, of the GPU caches, and of the kernels' text."""
