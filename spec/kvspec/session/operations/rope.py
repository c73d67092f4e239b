"""RoPE by itself: rows turned by positions that are said, and whether the rows handed in are as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kvspec.contract import Rope
from kvspec.operations.table import Operation, argument
from kvspec.session.operations.cache import offered

if TYPE_CHECKING:
    from kvspec.session.driver import Given, Session, Step


def rotate(session: Session, cache: Any, op: Operation, step: Step, given: Given) -> None:
    """Key rows turned by their positions; then all of them by so many more."""
    assert given.rows is not None
    turn, before = offered(session.adapter, "rotate"), given.rows.keys.tobytes()
    keys, _ = session.handed(op, given)
    rope = Rope(argument(op, "pairing"), argument(op, "base"), op.get("dims"))
    n = op["n"] if op.get("positions") is None else op["positions"]
    with session.metered(step):
        turned = turn(keys, op["at"] + argument(op, "stride") * np.arange(n), rope)
        if op.get("by") is not None:
            turned = turn(turned, np.full(n, op["by"]), rope)
    step.arrays["rotated"] = (session.keep_there if op.get("resident") else session.keep)(turned)
    left = session.adapter.fetch(keys) if op.get("resident") else given.rows.keys
    step.values["intact"] = left.tobytes() == before


DO = {"rotate": rotate}
