"""Copies in the list model: `kvref.list_model.copy`."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model.copy import Written
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs
from kvspec.trace import overridden


def model(kind: str, config: Config, claim: Claim) -> Written:
    """A new buffer."""
    return Written(config)


def copy(lists: Any, buffer: Written, op: Operation, step: Expected, given: Inputs) -> None:
    """Rows into the slots from a position on."""
    n, config = op["n"], overridden(buffer.config, op)
    if n == 0 or config.kv_heads == 0 or config.k_dim == config.v_dim == 0:
        cite("COPY-8")
        return
    _demand(buffer, op, config)
    first = lists.trace_inputs.book.next
    buffer.copy(list(range(first, first + n)), op["at"], bool(argument(op, "sliding")))


def _demand(buffer: Written, op: Operation, config: Config) -> None:
    """Refuse rows that are not fit for the buffer."""
    rows = op["n"] if op.get("rows") is None else op["rows"]
    same = all(getattr(config, name) == getattr(buffer.config, name) for name in ("kv_heads", "k_dim", "v_dim"))
    if not same or op.get("values") not in (None, rows):
        raise Refused("COPY-17", "rows of another geometry")
    if not buffer.takes(config.dtype):
        raise Refused("COPY-18", "rows of a dtype that does not narrow")
    if rows < op["n"]:
        raise Refused("COPY-20", "a source too short")
    if rows > op["n"]:
        cite("COPY-7")


def alias(lists: Any, buffer: Written, op: Operation, step: Expected, given: Inputs) -> None:
    """The buffer's own rows are no source; slots that there are not have no rows."""
    if op["n"]:
        raise Refused("COPY-19" if op["source"] < buffer.capacity else "COPY-20", "a source that overlaps")
    cite("COPY-8")


def look(lists: Any, buffer: Written, step: Expected) -> None:
    """Every slot."""
    step.rows["state"] = buffer.slots


DO = {"copy": copy, "alias": alias}
MODELS = {"copy": model}
LOOK = {"copy": look}
