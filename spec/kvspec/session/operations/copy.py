"""Copies into a preallocated buffer; observes every slot."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.geometry import Array
from kvspec.operations.table import Operation, argument
from kvspec.session.arrays import with_batch_axis
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe the whole buffer, as `[1, kv_heads, capacity, dim]` in either layout."""
    if "state" in session.observe:
        token = session.config.layout == "token"
        session.take(step, "state", cache.read("state"), heads_first if token else with_batch_axis)
    session.held(cache, step, which)


def heads_first(array: Any) -> Array:
    """Rows `[n, kv_heads, dim]` as `[1, kv_heads, n, dim]`."""
    return np.asarray(array).transpose(1, 0, 2)[None]


def copy(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Copy rows `[n, kv_heads, dim]` of some dtype into the slots from `at` on."""
    rows = session.handed(op, inputs)
    with session.metered(step):
        cache.copy(*rows, op["n"], op["at"], bool(argument(op, "sliding")))


def alias(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Copy with the buffer's own rows as the source."""
    rows = cache.alias(op["source"], op["n"])
    with session.metered(step):
        cache.copy(*rows, op["n"], op["at"], bool(argument(op, "sliding")))


DO = {"copy": copy, "alias": alias}
