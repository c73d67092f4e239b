"""A trace in the making: what the draws of all profiles share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kvconform.lists import Lists
from kvconform.replay import Supplies
from kvspec.contract import PROFILES, Claim, Description
from kvspec.operations import TAKES_ROWS, Operation
from kvspec.session import NOTHING
from kvspec.trace import Trace

LIST_MODEL = Description("list model", dict.fromkeys(PROFILES, Claim("visible")))


class Drawing:
    """The operations so far, and the list model's view of them: by it a draw knows where the boundaries are."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        self.draw = draw
        self.ops: list[Operation] = []
        self.supplies = Supplies(start)
        self.lists = Lists(LIST_MODEL, self.supplies)
        self.lists.do({"op": "open"}, self.supplies.give({"op": "open"}))

    def follow(self, op: Operation) -> None:
        """Add an operation, and have the list model do it; it needs no rows for that, only their number."""
        self.ops.append(op)
        given = NOTHING if op["op"] in TAKES_ROWS else self.supplies.give(op)
        self.supplies.done(op, self.lists.do(op, given).result)

    def of(self, *choices: Any) -> Any:
        """One of these, the earlier the simpler."""
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        """Any from low to high."""
        return self.draw(st.integers(low, max(low, high)))
