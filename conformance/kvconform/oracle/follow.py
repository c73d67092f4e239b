"""A trace in the list model: operation by operation for who draws it, or at once to its end."""

from __future__ import annotations

from kvconform.oracle.list_model import Expected, Lists
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.contract import CHAPTERS, Claim, Description
from kvspec.operations.table import TAKES_QUERIES, TAKES_ROWS, Operation
from kvspec.session.step import NOTHING
from kvspec.trace import Trace

LIST_MODEL = Description("list model", dict.fromkeys(CHAPTERS, Claim("visible")))


class ModelledTrace:
    """The operations so far, and the list model's view of them. Rows and queries are made only where outputs are
    wanted: of all else the model needs only their number."""

    def __init__(self, start: Trace, outputs: bool = False) -> None:
        self.ops: list[Operation] = []
        self.unmade = () if outputs else (*TAKES_ROWS, *TAKES_QUERIES)
        self.trace_inputs = TraceInputs(start)
        self.lists = Lists(LIST_MODEL, self.trace_inputs)
        self.lists.do({"op": "open"}, self.trace_inputs.make({"op": "open"}))

    def follow(self, op: Operation) -> Expected:
        """Add an operation, and have the list model do it."""
        self.ops.append(op)
        step = self.lists.do(op, NOTHING if op["op"] in self.unmade else self.trace_inputs.make(op))
        self.trace_inputs.done(op, step.result)
        return step


def at_the_end(trace: Trace) -> Lists:
    """The list model after all of a trace."""
    modelled = ModelledTrace(trace)
    for op in trace.ops:
        modelled.follow(op)
    return modelled.lists


def expected(trace: Trace) -> list[Expected]:
    """What the list model expects of every operation of a trace, outputs among it."""
    modelled = ModelledTrace(trace, outputs=True)
    return [modelled.follow(op) for op in trace.ops]
