"""RoPE without a cache: rotates rows by given positions, and checks that the input rows did not change.

Positions are i64 `[n]`, or `[3, n]` with sections: time, height, width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Rope
from kvspec.geometry import Array
from kvspec.operations.table import Operation, argument
from kvspec.rope import sections as rope_sections
from kvspec.rope.scaling import again, parsed
from kvspec.session.state import SessionState, offered
from kvspec.session.step import Inputs, Step


def rotate(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Rotate key rows by their positions; then all of them by the same further positions."""
    assert inputs.rows is not None
    turn, before = offered(session.adapter, "rotate"), inputs.rows.keys.tobytes()
    keys, _ = session.handed(op, inputs)
    scaling, sections = parsed(argument(op, "scaling")), rope_sections.parsed(op.get("sections"))
    rope = Rope(argument(op, "pairing"), argument(op, "base"), op.get("dims"), scaling, sections)
    positions = _positions(op)
    with session.metered(step):
        turned = turn(keys, positions, rope)
        if op.get("by") is not None:
            turned = turn(turned, np.full_like(positions, op["by"]), rope._replace(scaling=again(scaling)))
    session.note(step, "rotated", turned, bool(op.get("resident")))
    host = keys if isinstance(keys, np.ndarray) else inputs.rows.keys
    left = session.adapter.fetch(keys) if op.get("resident") else host
    step.values["intact"] = left.tobytes() == before


def _positions(op: Operation) -> Array:
    """Give the time of each row, `[n]`; with sections also its height and its width, `[3, n]`. Rows of text have
    three that are equal; those of an image have one time, and the height and the width of their place in it."""
    rows, columns = np.arange(op["n"] if op.get("positions") is None else op["positions"]), op.get("columns")
    three = (rows, rows, rows) if columns is None else (np.zeros_like(rows), rows // columns, rows % columns)
    made: Array = op["at"] + argument(op, "stride") * np.stack(three)
    return made[0] if op.get("sections") is None else made


DO = {"rotate": rotate}
