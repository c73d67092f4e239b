"""Questions: whether an append or a restore would be accepted."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import Operation
from kvspec.session.state import SessionState, metered
from kvspec.session.step import Inputs, Step


def askappend(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask about an append."""
    step.answered("accepts", metered(session, step, cache, "can_append", op["n"]))


def askrestore(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask about a restore."""
    saved = session.snapshots[op["name"]]
    step.answered("accepts", metered(session, step, cache, "can_restore", saved, op["to"]))


DO = {"askappend": askappend, "askrestore": askrestore}
