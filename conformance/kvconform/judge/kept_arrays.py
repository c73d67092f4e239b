"""The arrays of a trial's steps, kept for drawings and laws up to a budget, however much an adapter sends."""

from __future__ import annotations

from collections import deque

from kvspec.session.step import Step

BUDGET = 128 << 20
"""Bytes of an adapter's arrays that are kept of one trace."""


class KeptArrays:
    """The newest steps of a trace whose arrays fit into the budget; older steps lose theirs."""

    def __init__(self, budget: int | None = None) -> None:
        self._left = BUDGET if budget is None else budget
        self._steps: deque[tuple[Step, int]] = deque()
        self.dropped = False
        """Whether a step lost its arrays."""

    def keep(self, step: Step) -> None:
        """Keep the arrays of a step that was compared. Drop those of older ones as far as needed."""
        size = sum(array.nbytes for array in step.arrays.values() if array is not None)
        self._steps.append((step, size))
        self._left -= size
        while self._left < 0 and len(self._steps) > 1:
            oldest, freed = self._steps.popleft()
            oldest.arrays, self._left, self.dropped = {}, self._left + freed, True
