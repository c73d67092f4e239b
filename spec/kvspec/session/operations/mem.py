"""Planning memory: the bytes an append will need, and the largest batch that fits."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import Operation, argument
from kvspec.session.state import SessionState, metered
from kvspec.session.step import Inputs, Step


def plan(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Plan the bytes held after an append of n rows, and the peak during it."""
    step.values["plan"] = [int(n) for n in metered(session, step, cache, "plan", op["n"])]


def fit(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Find the largest batch that fits into the given free memory, and whether one sequence fits at all."""
    assert inputs.opening is not None
    room = op["free"], argument(op, "reserve"), argument(op, "most")
    found, fits = metered(session, step, session.adapter, "fit", *inputs.opening, *room)
    step.values["fit"] = [int(found), int(bool(fits))]


DO = {"plan": plan, "fit": fit}
