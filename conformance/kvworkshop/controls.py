"""Controls: wrong caches that the suite must find, and correct ones that it must not fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvconform.bugs.mutant import Mutant, says
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvref.caches.store import Store
from kvspec.contract import CHAPTERS, Pair, Readable
from kvspec.geometry import Array
from kvspec.masks import Logical, Window
from kvworkshop import correct_variants
from kvworkshop.systematic import modules


class LosesTheLastRow(Growing):
    """Whatever is read of it lacks the newest row."""

    def read(self, what: Readable) -> Pair | None:
        pair = super().read(what)
        return None if pair is None else Pair(*(a[:, :, :-1] for a in pair))


class Losing(Reference):
    """Every read of its growing cache lacks the newest row."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": LosesTheLastRow, "ring": Ring}


class SeesOneRowMore(correct_variants.WholeRing):
    """Masks a window that is one row too wide."""

    def mask(self, logical: Logical) -> Array | None:
        return Growing.mask(self, (*logical, Window(self.window + 1)))


class Wide(correct_variants.Whole):
    """A ring that keeps the whole history, which is allowed, and masks a window that is one row too wide."""

    ring: ClassVar[Any] = SeesOneRowMore


class RollsNothingBack(Store):
    """A rollback is taken, and leaves every length as it is."""

    def rollback(self, to: int) -> None:
        lengths = list(self.lengths_)
        super().rollback(to)
        self.lengths_ = lengths


class Stuck(Reference):
    """A store whose rollback changes nothing."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": RollsNothingBack}


WRONG: dict[type[Any], tuple[str, ...]] = {Losing: ("GROW-2",), Wide: ("RING-1",), Stuck: ("STORE-14",)}
"""Each control that must be found, with the clauses it breaks."""


def _second(gpu: bool) -> Any:
    """The second of two adapters: the first must leave nothing behind."""
    modules.adapter({}, gpu=gpu)
    return modules.adapter({}, gpu=gpu)


def mutants() -> Iterator[Mutant]:
    """Every control."""
    for wrong, clauses in WRONG.items():
        yield Mutant(f"control/{wrong.__name__}", "control", says(wrong), clauses, wrong)
    for right, chapters in correct_variants.VARIANTS.items():
        yield _control(right.__name__, says(right), right, chapters)
    then = "executed as mutants are, after others that must leave nothing behind."
    yield _control("reference again", f"The reference itself, {then}", partial(_second, gpu=False), CHAPTERS)
    yield _control("gpu again", f"The GPU caches themselves, {then}", partial(_second, gpu=True), CHAPTERS)


def _control(name: str, sentence: str, adapter: Callable[[], Any], chapters: tuple[str, ...]) -> Mutant:
    """A correct cache, which must pass."""
    return Mutant(f"control/{name}", "control", sentence, (), adapter, chapters=chapters, is_control=True)
