"""Copies into a preallocated buffer, and what is observed of one: every slot."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.operations.table import Operation, argument
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """The whole buffer, as `[1, kv_heads, capacity, dim]` whatever its layout."""
    if "state" in session.observe:
        token = session.config.layout == "token"
        found = Pair(*(np.asarray(a) for a in cache.read("state")))
        shown = Pair(*(a.transpose(1, 0, 2)[None] if token else a[None] for a in found))
        session.take(step, "state", shown)
    session.held(cache, step, which)


def copy(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Rows `[n, kv_heads, dim]` of some dtype into the slots from `at` on."""
    rows = session.handed(op, inputs)
    with session.metered(step):
        cache.copy(*rows, op["n"], op["at"], bool(argument(op, "sliding")))


def alias(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """The buffer's own rows as the source."""
    rows = cache.alias(op["source"], op["n"])
    with session.metered(step):
        cache.copy(*rows, op["n"], op["at"], bool(argument(op, "sliding")))


DO = {"copy": copy, "alias": alias}
