"""All mutants there are, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvconform.mutants import anomalies, catalogue, controls, fakes, kernels, systematic
from kvconform.mutants.mutant import Mutant

KINDS: dict[str, Callable[[], Iterator[Mutant]]] = {
    "controls": controls.mutants,
    "fakes": fakes.mutants,
    "catalogue": catalogue.mutants,
    "reference": systematic.reference,
    "gpu": systematic.gpu,
    "anomalies": anomalies.mutants,
    "kernels": kernels.mutants,
}
"""Controls; fakes for the harness itself; real bugs; bugs as anybody could write them; systematic faults of the
reference, of the GPU caches, and of the kernels' text."""
