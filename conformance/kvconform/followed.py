"""A trace in the list model: operation by operation for who draws it, or at once to its end."""

from __future__ import annotations

from kvconform.lists import Lists
from kvconform.replay import Supplies
from kvspec.contract import PROFILES, Claim, Description
from kvspec.operations import TAKES_QUERIES, TAKES_ROWS, Operation
from kvspec.session import NOTHING
from kvspec.trace import Trace

LIST_MODEL = Description("list model", dict.fromkeys(PROFILES, Claim("visible")))


class Followed:
    """The operations so far, and the list model's view of them. No rows are made: it needs only their number."""

    def __init__(self, start: Trace) -> None:
        self.ops: list[Operation] = []
        self.supplies = Supplies(start)
        self.lists = Lists(LIST_MODEL, self.supplies)
        self.lists.do({"op": "open"}, self.supplies.give({"op": "open"}))

    def follow(self, op: Operation) -> None:
        """Add an operation, and have the list model do it."""
        self.ops.append(op)
        given = NOTHING if op["op"] in (*TAKES_ROWS, *TAKES_QUERIES) else self.supplies.give(op)
        self.supplies.done(op, self.lists.do(op, given).result)


def at_the_end(trace: Trace) -> Lists:
    """The list model after all of a trace."""
    followed = Followed(trace)
    for op in trace.ops:
        followed.follow(op)
    return followed.lists
