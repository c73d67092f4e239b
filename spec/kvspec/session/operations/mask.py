"""Masks: made for the latest append, or for the latest draft of a round."""

from __future__ import annotations

from typing import Any

from kvspec import masks
from kvspec.operations.table import Operation, cache_of
from kvspec.session.state import SessionState, metered
from kvspec.session.step import Inputs, Step


def mask(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Make the mask for the latest append, or a round's latest draft."""
    parts = masks.from_json(op["parts"]) if inputs.logical is None else inputs.logical
    for p in parts:
        if isinstance(p, masks.Explicit):
            session.keep(p.array)
    if op.get("round") is None:
        made = metered(session, step, cache, "mask", parts)
    else:
        made = metered(session, step, session.rounds[op["round"]], "mask", cache_of(op), parts)
    session.note(step, "mask", made)


DO = {"mask": mask}
