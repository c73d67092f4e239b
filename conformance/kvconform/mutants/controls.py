"""Controls: what must be found whatever happens, and what must not be found however different it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvconform.mutants import kernels, systematic
from kvconform.mutants.mutant import Mutant
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.contract import PROFILES, Pair, Readable


class LosesTheLastRow(Growing):
    """Whatever is read of it lacks the newest row."""

    def read(self, what: Readable) -> Pair | None:
        pair = super().read(what)
        return None if pair is None else Pair(*(a[:, :, :-1] for a in pair))


class Losing(Reference):
    """Whatever is read of its growing cache lacks the newest row."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": LosesTheLastRow, "ring": Ring}


def _second(gpu: bool) -> Any:
    """The second of two: the first must have left nothing behind."""
    systematic.adapter({}, gpu=gpu)
    return systematic.adapter({}, gpu=gpu)


def mutants() -> Iterator[Mutant]:
    """Every control."""
    yield Mutant("control/Losing", "control", Losing.__doc__ or "", ("GROW-2",), Losing)
    yield from (
        Mutant(
            f"control/{name} again",
            "control",
            f"The {name} as it is, executed anew as mutants are, after another that must leave nothing behind.",
            (),
            partial(_second, gpu),
            profiles=PROFILES,
            lives=True,
        )
        for name, gpu in (("reference", False), ("gpu", True))
    )
    yield kernels.sound()
