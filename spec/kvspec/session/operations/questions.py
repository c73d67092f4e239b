"""Questions: whether an append or a restore would be accepted."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import Operation
from kvspec.session.offered import metered
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def askappend(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask about an append."""
    _note(step, metered(session, step, cache, "can_append", op["n"]))


def askrestore(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask about a restore."""
    _note(step, metered(session, step, cache, "can_restore", session.snapshots[op["name"]], op["to"]))


def _note(step: Step, accepts: bool | None) -> None:
    """Note what a cache answers; the list model answers None where that is the engine's choice."""
    if accepts is not None:
        step.values["accepts"] = bool(accepts)


DO = {"askappend": askappend, "askrestore": askrestore}
