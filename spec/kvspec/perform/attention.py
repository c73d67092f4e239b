"""Attention: rows appended and queries answered in one call; over a batch; captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kvspec import masks
from kvspec.contract import Attention, Rope
from kvspec.geometry import Array
from kvspec.operations import Operation, argument
from kvspec.perform.cache import offered

if TYPE_CHECKING:
    from kvspec.session import Given, Session, Step


def how(op: Operation, given: Given) -> Attention:
    """What goes with the queries of an operation."""
    rope = None if op.get("rope") is None else Rope(op["rope"], argument(op, "base"))
    return Attention(masks.CAUSAL if given.logical is None else given.logical, argument(op, "splits"), rope)


def answered(session: Session, op: Operation, step: Step, given: Given, ask: Callable[[Any], Any]) -> None:
    """Note the output of what `ask` does, which it is given room for where the operation says so."""
    out = _room(session, op, given) if argument(op, "into") else None
    with session.metered(step):
        found = ask(out)
    if op.get("resident"):
        found = session.adapter.fetch(found)
    elif out is not None:
        found = out  # what the caller looks at is the array it handed in
    step.arrays["output"] = session.keep(found)


def _room(session: Session, op: Operation, given: Given) -> Any:
    """An output to be written to, full of NaN."""
    assert given.queries is not None
    room: Array = np.full((*given.queries.shape[:-1], session.config.v_dim), np.nan, np.float32)
    return session.adapter.place(room)[0] if op.get("resident") else room


def attend(session: Session, cache: Any, op: Operation, step: Step, given: Given) -> None:
    """Append, then attend; on a store's layer or a paged cache's sequence where it says so."""
    arrays, do = session.handed(op, given), offered(cache, "attend")
    of = op.get("layer", op.get("sequence"))
    answered(session, op, step, given, lambda out: do(*arrays, how(op, given), out, of))


def attendbatch(session: Session, store: Any, op: Operation, step: Step, given: Given) -> None:
    """A query for each sequence."""
    (queries,), do = session.handed(op, given), offered(store, "attend_batch")
    answered(session, op, step, given, lambda out: do(queries, op["layer"], how(op, given), out))


def captureattend(session: Session, store: Any, op: Operation, step: Step, given: Given) -> None:
    """An attend of one row, captured."""
    made = offered(store, "capture_attend")
    heads = op.get("heads", session.config.kv_heads)
    with session.metered(step):
        session.names["captured attention"][op["name"]] = made(op["layer"], heads, how(op, given))


def replayattend(session: Session, store: Any, op: Operation, step: Step, given: Given) -> None:
    """The captured one, on new queries and rows."""
    work, arrays = session.names["captured attention"][op["name"]], session.handed(op, given)
    with session.metered(step):
        found = work.replay(*arrays)
    step.arrays["output"] = session.keep(found)


DO = {
    "attend": attend,
    "attendbatch": attendbatch,
    "captureattend": captureattend,
    "replayattend": replayattend,
}
