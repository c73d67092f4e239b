"""All mutants there are, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvconform.bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvworkshop import controls, fakes
from kvworkshop.systematic import kernels, modules


def _controls() -> Iterator[Mutant]:
    yield from controls.mutants()
    yield kernels.control()


KINDS: dict[str, Callable[[], Iterator[Mutant]]] = {
    "controls": _controls,
    "fakes": fakes.mutants,
    "catalogue": known_bugs.real,
    "reference": modules.reference,
    "gpu": modules.gpu,
    "anomalies": known_bugs.common,
    "kernels": kernels.mutants,
}
"""The kinds of mutants: controls, fakes for the harness itself, real bugs, and bugs that anybody could write. Then
systematic faults of the reference, of the GPU caches and of the kernels' text."""
