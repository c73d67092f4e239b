"""Methods that an adapter may leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvspec.errors import Unsupported
from kvspec.operations.table import ARGUMENTS, TAKES_ROWS, Operation, numbers_in
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def offered(thing: Any, method: str) -> Callable[..., Any]:
    """Get a method that not every adapter has. Raises Unsupported if it is missing."""
    found = getattr(thing, method, None)
    if found is None:
        raise Unsupported(f"this adapter has no {method}")
    return found  # type: ignore[no-any-return]


def metered(session: SessionState, step: Step, thing: Any, method: str, *arguments: Any) -> Any:
    """Call a method that not every adapter has, and note what the meter counts. Raises Unsupported."""
    with session.metered(step):
        return offered(thing, method)(*arguments)


def call(method: str, *names: str) -> Callable[..., None]:
    """Make an operation that is one metered call of a cache's method. It passes the operation's rows, if there are
    any, then its arguments of these names."""

    def do(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
        rows = session.handed(op, inputs) if op["op"] in TAKES_ROWS else ()
        values = [numbers_in(op[n]) if ARGUMENTS[op["op"]][n].holds == "list" else op[n] for n in names]
        metered(session, step, cache, method, *rows, *values)

    return do
