"""Follow a trace in the list model: operation by operation while it is drawn, or to its end at once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kvconform.oracle.expected import Expected
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.contract import Description, description
from kvspec.operations.table import Operation
from kvspec.session.step import Inputs
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvconform.oracle.list_model import ListModelSession


@cache
def _claims() -> Description:
    """What the list model claims."""
    from kvref.list_model.adapter import ListModel  # frozen traces need no list model

    return description(ListModel().describe())


class ModelledTrace:
    """The operations so far, and the list model's view of them. Rows and queries are made only where they are
    `wanted`: to follow a trace the model needs no more than their number. It notes what it is to `observe`."""

    def __init__(self, start: Trace, wanted: bool = False, observe: tuple[str, ...] = ()) -> None:
        from kvconform.oracle.list_model import ListModelSession

        self.ops: list[Operation] = []
        self.wanted, self.trace_inputs = wanted, TraceInputs(start)
        self.session = ListModelSession(_claims(), self.trace_inputs.keep_rows(), observe)
        self.session.do({"op": "open"}, self.trace_inputs.make({"op": "open"}))

    def follow(self, op: Operation) -> Expected:
        """Add an operation, and have the list model do it."""
        self.ops.append(op)
        step = self.session.do(op, self._inputs(op))
        self.trace_inputs.done(op, step.result)
        return step

    def _inputs(self, op: Operation) -> Inputs:
        from kvconform.oracle.named_inputs import named

        return named(self.trace_inputs, op, self.trace_inputs.make(op) if self.wanted else None)


def at_the_end(trace: Trace) -> ListModelSession:
    """The list model after all of a trace."""
    modelled = ModelledTrace(trace)
    for op in trace.ops:
        modelled.follow(op)
    return modelled.session


def expected(trace: Trace) -> list[Expected]:
    """What the list model expects of every operation of a trace, outputs among it."""
    from kvconform.oracle.list_model import OBSERVED

    modelled = ModelledTrace(trace, wanted=True, observe=OBSERVED)
    return [modelled.follow(op) for op in trace.ops]


def seen(trace: Trace) -> list[Expected]:
    """What the list model expects that queries see, after every operation of a trace."""
    modelled = ModelledTrace(trace, observe=("positions", "mask", "sees"))
    return [modelled.follow(op) for op in trace.ops]
