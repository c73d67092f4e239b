"""RoPE by itself: rows turned by positions that are said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kvspec.contract import Rope
from kvspec.operations import Operation, argument
from kvspec.perform.cache import offered

if TYPE_CHECKING:
    from kvspec.session import Given, Session, Step


def rotate(session: Session, cache: Any, op: Operation, step: Step, given: Given) -> None:
    """Key rows turned by their positions; then all of them by so many more."""
    keys, _ = session.handed(op, given)
    rope = Rope(argument(op, "pairing"), argument(op, "base"), op.get("dims"))
    turn = offered(session.adapter, "rotate")
    with session.metered(step):
        turned = turn(keys, op["at"] + argument(op, "stride") * np.arange(op["n"]), rope)
        if op.get("by") is not None:
            turned = turn(turned, np.full(op["n"], op["by"]), rope)
    step.arrays["rotated"] = session.keep(turned)


DO = {"rotate": rotate}
