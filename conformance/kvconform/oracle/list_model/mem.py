"""Planning memory in the list model: what fits is counted; what a plan owes `kvconform.judge.ledger` judges."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs


def plan(lists: Any, model: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """How many bytes is for the adapter to say; whether there is room at all is known."""
    if model.kind != "store":
        return
    longest = max(layer.length for layer in model.layers)
    if op["n"] and longest + op["n"] > model.config.max_len:
        raise Refused("STORE-8", "no room for so many rows")
    cite("MEM-18")


def fit(lists: Any, model: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """The number of batches, from 1 on, whose bytes are there beside the reserve."""
    assert given.opening is not None
    kind, config = given.opening
    most, reserve = (argument(op, name) for name in ("most", "reserve"))
    if kind != "store":
        raise Refused("MEM-17", "sequences of no fixed size")
    if most is not None and most < 1:
        raise Refused("MEM-16", "no sequences")
    cite("MEM-12", "MEM-14", "MEM-13" if reserve is None else "MEM-11")
    batches, each = range(1, (32 if most is None else most) + 1), _bytes(config)
    if each == 0:
        cite("MEM-15")
    left = op["free"] - (3_500_000_000 if reserve is None else reserve)
    fitting = bisect_right(batches, left, key=lambda m: m * each) if each else len(batches)
    step.values["fit"] = [max(1, fitting), int(fitting > 0)]


def _bytes(config: Config) -> int:
    """Bytes of the keys and values of every head, position and layer of one sequence."""
    row = sum(dim * DTYPES[config.dtype].itemsize for dim in (config.k_dim, config.v_dim))
    return row * config.kv_heads * (config.max_len or 0) * (config.layers or 0)


DO: dict[str, Any] = {"plan": plan, "fit": fit}
