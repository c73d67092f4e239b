"""Trials at level storage, judged by the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvconform.judge import storage
from kvconform.judge.lockstep import FAR_AHEAD, PendingStep, Trial, observables
from kvconform.judge.storage import Difference
from kvconform.oracle.reference import CitingReference
from kvspec.session.step import Step

if TYPE_CHECKING:
    from kvconform.oracle.abstract_state import Key


class StorageTrial(Trial):
    """Judged by the reference, slot by slot."""

    AHEAD = FAR_AHEAD

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        observe = observables(self.trace, self.adapter, "storage")
        self.oracle = CitingReference(self.deviating.reference(), observe)
        if self.trace_inputs.folds():
            self.trace_inputs.keep_rows()

    def let_go(self, want: Step, got: Step) -> None:
        """Keep the oracle's arrays alone."""
        got.arrays = dict(want.arrays)  # they are equal, and the oracle keeps its own

    def state(self) -> Key:
        """The state of the reference's cache A."""
        from kvconform.oracle.abstract_state import key  # it reads all kinds, and few traces are watched

        return key(self.oracle, self.result.book)

    def compare(self, asked: PendingStep, got: Step) -> list[Difference]:
        """How the adapter differs from the reference."""
        return storage.storage(asked.want, got, self.result.book, asked.claim, asked.claims)
