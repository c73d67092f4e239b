"""RoPE in the list model: what is refused, and `kvref.listed_rope` for the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.lists.expected import Expected
from kvref import listed_rope
from kvref.cite import cite
from kvspec.contract import Rope
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.operations import Operation, argument
from kvspec.session import Given
from kvspec.trace import overridden


def asked(op: Operation) -> Rope:
    """How an operation turns rows."""
    return Rope(argument(op, "pairing"), argument(op, "base"), op.get("dims"))


def rotate(lists: Any, model: Any, op: Operation, step: Expected, given: Given) -> None:
    """Each row turned by its position, then by so many more."""
    config, rope, n = overridden(lists.supplies.of(op)[1], op), asked(op), op["n"]
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
    if 0 in positions(op):
        cite("ROPE-6")
    if argument(op, "fill") == "bits":
        cite("ROPE-7")


def positions(op: Operation) -> list[int]:
    """That of each row."""
    return [op["at"] + i * argument(op, "stride") for i in range(op["n"])]


def _turned(op: Operation, rope: Rope, rows: listed_rope.Turned) -> listed_rope.Turned:
    if not rows.middle.size:
        return rows
    found = listed_rope.turned(rows, np.array(positions(op)), rope)
    return found if op.get("by") is None else listed_rope.turned(found, np.full(op["n"], op["by"]), rope)


DO: dict[str, Any] = {"rotate": rotate}
