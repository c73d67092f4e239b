"""RoPE without a cache: rotates rows by given positions, and checks that the input rows did not change."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Rope
from kvspec.operations.table import Operation, argument
from kvspec.rope_scaling import again, parsed
from kvspec.session.offered import offered
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def rotate(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Rotate key rows by their positions; then all of them by the same further positions."""
    assert inputs.rows is not None
    turn, before = offered(session.adapter, "rotate"), inputs.rows.keys.tobytes()
    keys, _ = session.handed(op, inputs)
    rope = Rope(argument(op, "pairing"), argument(op, "base"), op.get("dims"), parsed(argument(op, "scaling")))
    n = op["n"] if op.get("positions") is None else op["positions"]
    with session.metered(step):
        turned = turn(keys, op["at"] + argument(op, "stride") * np.arange(n), rope)
        if op.get("by") is not None:
            turned = turn(turned, np.full(n, op["by"]), rope._replace(scaling=again(rope.scaling)))
    session.note(step, "rotated", turned, bool(op.get("resident")))
    host = keys if isinstance(keys, np.ndarray) else inputs.rows.keys
    left = session.adapter.fetch(keys) if op.get("resident") else host
    step.values["intact"] = left.tobytes() == before


DO = {"rotate": rotate}
