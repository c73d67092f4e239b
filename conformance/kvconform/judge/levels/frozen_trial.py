"""Trials at level storage, judged by what is known that the reference answers."""

from __future__ import annotations

from typing import Any

from kvconform.judge import storage
from kvconform.judge.levels.frozen_answers import Digest
from kvconform.judge.lockstep import FAR_AHEAD, PendingStep, Trial
from kvconform.judge.storage import Difference
from kvconform.oracle.trace_inputs import RunInputs
from kvspec.geometry import Config
from kvspec.operations.table import Operation, each_of, length_of
from kvspec.session.step import Inputs, Step


class FrozenTrial(Trial):
    """Judged by what the reference is known to answer: results step by step, and in the end a hash of all the rest.
    It tells whether the adapter agrees. If not, the reference tells how, from the answers that were noted."""

    AHEAD = FAR_AHEAD

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.past = True  # so that all answers are there to be judged again
        assert self.trace.frozen is not None
        self._outcomes, self._asked_for = iter(self.trace.frozen.outcomes), list[PendingStep]()
        self._digest = Digest()

    def agrees(self) -> bool:
        """Whether the adapter does what the reference does, and costs and plans are within bounds."""
        assert self.trace.frozen is not None
        steps = self.run().steps
        whole = not self.result.failed and len(steps) == len(self.trace.ops)
        if not whole or str(self._digest) != self.trace.frozen.digest:
            return False
        for asked, (want, got) in zip(self._asked_for, steps, strict=True):
            want.values, want.arrays = got.values, got.arrays
            super()._account(asked, got)
        self.result.states[:], self.result.by_hash = self.trace.frozen.states, True
        return not self.result.failed

    def begin(self, kind: str, config: Config) -> Step:
        """What the reference answers to an opening."""
        return Step()

    def expect(self, op: Operation, inputs: Inputs) -> Step:
        """What is known of the reference's answer."""
        result, clause, cites, failed = next(self._outcomes)
        if isinstance(inputs.each, RunInputs):
            for number, part in enumerate(each_of(op), 1):
                inputs.each.make(part)
                last = number == length_of(op)
                inputs.each.done(part, result if last else "refused" if number - 1 in failed else "ok")
        return Step(result, clause, cites=cites)

    def compare(self, asked: PendingStep, got: Step) -> list[Difference]:
        """Note the answer. Compare its result alone."""
        self._asked_for.append(asked)
        self._digest.add(got)
        return storage.result(asked.want, got)

    def _account(self, asked: PendingStep, got: Step) -> None:
        """Costs follow from answers that are right: they are judged in the end."""
