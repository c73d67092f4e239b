"""Attention: rows appended and queries answered in one call; over a batch; captured."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.contract import Attention, Rope
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array
from kvspec.operations.table import Operation, argument, cache_of
from kvspec.registry import CACHES
from kvspec.session.operations.cache import history, offered
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def how(op: Operation, inputs: Inputs) -> Attention:
    """What goes with the queries of an operation."""
    rope = None if op.get("rope") is None else Rope(op["rope"], argument(op, "base"))
    return Attention(masks.CAUSAL if inputs.logical is None else inputs.logical, argument(op, "splits"), rope)


def answered(session: SessionState, op: Operation, step: Step, inputs: Inputs, ask: Callable[[Any], Any]) -> None:
    """Note the output of what `ask` does, which it is given room for where the operation says so."""
    room = Room(session, op, inputs) if argument(op, "into") else None
    try:
        with session.metered(step):
            found = ask(None if room is None else room.out)
    except Refused:
        if room is not None:
            step.values["intact"] = room.untouched(session)
        raise
    if room is not None and not op.get("resident"):
        step.values["intact"], found = room.guarded, room.out  # the caller looks at the array it handed in
    step.arrays["output"] = (session.keep_there if op.get("resident") else session.keep)(found)


GUARD = 64
"""Elements before and behind a given output on the host, which nobody may write to."""


class Room:
    """An output to be written to, full of NaN, on the host between two guards. It can only be read where the
    operation says so."""

    def __init__(self, session: SessionState, op: Operation, inputs: Inputs) -> None:
        assert inputs.queries is not None
        *front, rows, _ = inputs.queries.shape
        sizes = ("out_rows", rows), ("out_dim", session.config.v_dim)
        shape = (*front, *(own if op.get(name) is None else op[name] for name, own in sizes))
        dtype = DTYPES[op.get("out_dtype") or "f32"]
        self._all: Array = np.full(prod(shape) + 2 * GUARD, np.nan, dtype)
        mine = self._all[GUARD:-GUARD].reshape(shape)
        self._placed = bool(op.get("resident"))
        mine.flags.writeable = self._placed or not argument(op, "out_readonly")
        self.out: Any = session.adapter.place(mine)[0] if self._placed else mine

    @property
    def guarded(self) -> bool:
        """Whether nothing was written beside it."""
        return bool(np.isnan(self._all[:GUARD]).all() and np.isnan(self._all[-GUARD:]).all())

    def untouched(self, session: SessionState) -> bool:
        """Whether nothing was written at all."""
        found = session.adapter.fetch(self.out) if self._placed else self._all
        return bool(np.isnan(found).all())


def attend(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Append, then attend; on a store's layer or a paged cache's sequence where it says so."""
    arrays, do = session.handed(op, inputs), offered(cache, "attend")
    of = op.get("layer", op.get("sequence"))
    answered(session, op, step, inputs, lambda out: do(*arrays, how(op, inputs), out, of))
    if session.kinds[cache_of(op)] in CACHES and not session.speculating(cache):
        history(session, cache, step)


def attendbatch(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """A query for each sequence."""
    (queries,), do = session.handed(op, inputs), offered(store, "attend_batch")
    answered(session, op, step, inputs, lambda out: do(queries, op["layer"], argument(op, "splits"), out))


def captureattend(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """An attend of one row, captured."""
    made = offered(store, "capture_attend")
    heads = op.get("heads", session.config.kv_heads)
    with session.metered(step):
        session.names["captured attention"][op["name"]] = made(op["layer"], heads, argument(op, "splits"))


def replayattend(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """The captured one, on new queries and rows."""
    work, arrays = session.names["captured attention"][op["name"]], session.handed(op, inputs)
    with session.metered(step):
        found = work.replay(*arrays)
    step.arrays["output"] = (session.keep_there if op.get("resident") else session.keep)(found)


DO = {
    "attend": attend,
    "attendbatch": attendbatch,
    "captureattend": captureattend,
    "replayattend": replayattend,
}
