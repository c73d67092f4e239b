"""RoPE in the list model: what is refused, and `kvref.list_model.rope` for the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model import rope as listed_rope
from kvspec.contract import Rope
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs
from kvspec.trace import overridden


def asked(op: Operation) -> Rope:
    """How an operation turns rows."""
    return Rope(op.get("rope") or argument(op, "pairing"), argument(op, "base"), op.get("dims"))


def rotate(lists: Any, model: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """Each row turned by its position, then by so many more."""
    config, rope, n = overridden(lists.trace_inputs.opened_as(op)[1], op), asked(op), op["n"]
    step.values["intact"] = True
    cite("ROPE-9")
    if 0 in config.shape("k", n):
        cite("ROPE-10")
    else:
        _demand(op, rope, config.k_dim)
        _cite(op, rope, config)
    if given.rows is not None:
        step.rotated = _turned(op, rope, listed_rope.exactly(given.rows.keys, config.dtype))


def _demand(op: Operation, rope: Rope, width: int) -> None:
    if op.get("positions") not in (None, op["n"]):
        raise Refused("ROPE-11", "other than one position for each row")
    if (width if rope.dims is None else rope.dims) not in range(2, width + 1, 2):
        raise Refused("ROPE-12", "elements that are no pairs of the row")
    if rope.base < 1:
        raise Refused("ROPE-13", "a base of no frequencies")


def _cite(op: Operation, rope: Rope, config: Config) -> None:
    cite("ROPE-1" if rope.pairing == "norm" else "ROPE-2", "ROPE-3", "ROPE-5", "ROPE-8")
    if rope.dims not in (None, config.k_dim):
        cite("ROPE-4")
    if op["op"] == "rotate" and 0 in positions(op):
        cite("ROPE-6")
    if argument(op, "fill") == "bits":
        cite("ROPE-7")


def at_positions(lists: Any, op: Operation, config: Config, given: Inputs, first: int) -> listed_rope.Turned | None:
    """The queries of an attend turned at their positions, the first at `first`; the new keys are kept turned. None
    where that is not asked for, or nothing was made."""
    if op.get("rope") is None:
        return None
    _demand(op, asked(op), config.k_dim)
    _cite(op, asked(op), config)
    cite("ROPE-19", "ROPE-21", "ROPE-23", *(["ROPE-6"] if first == 0 else []))
    if given.rows is None or given.queries is None:
        return None
    where, rope, book = first + np.arange(op["n"]), asked(op), lists.trace_inputs.book
    keys = listed_rope.turned(listed_rope.exactly(given.rows.keys, config.dtype), where, rope)
    for i in range(op["n"]):
        serial = book.next + i
        book.kept[serial] = keys.middle[:, :, i], book.kept[serial][1]
        lists.astray[serial] = keys.bound[:, :, i]
    return listed_rope.turned(listed_rope.exactly(given.queries, "f32"), where, rope)


def positions(op: Operation) -> list[int]:
    """That of each row."""
    return [op["at"] + i * argument(op, "stride") for i in range(op["n"])]


def _turned(op: Operation, rope: Rope, rows: listed_rope.Turned) -> listed_rope.Turned:
    if not rows.middle.size:
        return rows
    found = listed_rope.turned(rows, np.array(positions(op)), rope)
    return found if op.get("by") is None else listed_rope.turned(found, np.full(op["n"], op["by"]), rope)


DO: dict[str, Any] = {"rotate": rotate}
