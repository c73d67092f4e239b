"""A window beside sinks is observed as a growing cache is; it also says at which positions its rows stand."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import Operation, positions_in
from kvspec.session.operations import growing
from kvspec.session.state import SessionState, metered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe lengths and rows, but not the capacity, about which the chapter says nothing."""
    growing.look(session, cache, step, which)
    step.values.pop(f"capacity{which}", None)


def positions(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask for the positions of the rows that the newest query sees."""
    step.values["places"] = [int(position) for position in metered(session, step, cache, "positions")]


def keep(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Drop all rows but those of some positions."""
    metered(session, step, cache, "keep", positions_in(op["kept"]))


DO = {"positions": positions, "keep": keep}
