"""Paged caches in the list model: `kvref.list_model.page`."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.list_model import attention, rope
from kvconform.oracle.list_model.cache import fits
from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model.page import Pool
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs


def make(kind: str, config: Config, claim: Any) -> Pool:
    """A fresh pool."""
    return Pool(config)


def look(lists: Any, pool: Pool, step: Expected) -> None:
    """Lengths and rows of every sequence, and how many pages nobody has."""
    step.values |= {"sequences": pool.lengths(), "free": pool.free}
    for number, one in enumerate(pool.all):
        if one is not None:
            step.rows[f"state.{number}"] = list(one.rows)


def append(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """New rows for a sequence."""
    if op["n"] == 0:
        cite("PAGE-7")
        return
    pool.demand(_sequence(op), op["n"], fits(op, pool.config))
    pool.append(_sequence(op), _new(lists, op["n"]))


def _new(lists: Any, n: int) -> list[int]:
    """The serials of n new rows."""
    return list(range(lists.trace_inputs.book.next, lists.trace_inputs.book.next + n))


def _sequence(op: Operation) -> int:
    """The sequence an operation is for, the first where it does not say."""
    return argument(op, "sequence") or 0


def attend(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """Append, then what each query sees of the sequence."""
    if argument(op, "into"):
        step.values["intact"] = True
    if attention.nothing(op):
        cite("PAGE-7")
        attention.none(lists, op, step, given, pool.config)
        return
    number, n = _sequence(op), op["n"]
    pool.demand(number, n, fits(op, pool.config))
    one = pool.one(number)
    asked = attention.of(op, pool.config, 1, n)
    asked.demand(pool.config, len(one.rows) + n)
    turned = rope.at_positions(lists, op, pool.config, given, len(one.rows))
    pool.append(number, _new(lists, n))
    cite("PAGE-37", "ATTN-1")
    attention.answered(op, step, asked)
    attention.expect(lists, step, pool.config, given, asked.sees(1, len(one.rows), one.rows), turned)


def admit(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """A new sequence."""
    step.values["sequence"] = pool.admit()


def fork(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """A new sequence that shares rows of another."""
    step.values["sequence"] = pool.fork(op["sequence"], op["n"])


def truncate(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """The newest rows of a sequence dropped."""
    pool.truncate(op["sequence"], op["to"])


def drop(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """A sequence given up."""
    pool.drop(op["sequence"])


def gather(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """Rows through a table handed in; which page is whose is not for this model to know."""
    found = pool.gather([] if op["table"] == "empty" else [int(page) for page in op["table"].split(",")], op["n"])
    if found is None:
        step.result = "any"
    else:
        step.rows["gathered"] = found


def peek(lists: Any, pool: Pool, op: Operation, step: Expected, given: Inputs) -> None:
    """What lies in a page is not for this model to know."""
    pool.peek(op["page"])


DO: dict[str, Any] = {
    "admit": admit,
    "fork": fork,
    "truncate": truncate,
    "drop": drop,
    "gather": gather,
    "peek": peek,
}
MODELS: dict[str, Any] = {"page": make}
LOOK: dict[str, Any] = {"page": look}
APPEND: dict[str, Any] = {"page": append}
ATTEND: dict[str, Any] = {"page": attend}
