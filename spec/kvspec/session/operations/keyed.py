"""Pools that find rows by content: ask, begin and end requests, and observe the pool."""

from __future__ import annotations

from typing import Any

from kvspec.contract.pools import Request
from kvspec.operations.table import Operation
from kvspec.operations.texts import tokens_in
from kvspec.session.operations import page
from kvspec.session.state import SessionState, call, metered
from kvspec.session.step import Inputs, Step

look = page.look


def match(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask how much of a request is found."""
    step.values["hit"] = int(metered(session, step, cache, "match", Request.of(op)))


def request(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Begin a sequence."""
    rows = session.handed(op, inputs)
    sequence, hit = metered(session, step, cache, "request", Request.of(op), op.get("chunk"), *rows)
    step.values |= {"sequence": int(sequence), "hit": int(hit)}


def compute(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Compute tokens that a request has."""
    metered(session, step, cache, "compute", op["sequence"], op["n"], *session.handed(op, inputs))


def more(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Compute tokens that a request has not: answer or propose."""
    rows = session.handed(op, inputs)
    metered(session, step, cache, op["op"], op["sequence"], tokens_in(op["tokens"]), *rows)


DO = {
    "match": match,
    "request": request,
    "compute": compute,
    "answer": more,
    "propose": more,
    "accept": call("accept", "sequence", "n"),
    "finish": call("finish", "sequence"),
    "abort": call("abort", "sequence"),
    "evict": call("evict", "n"),
    "clear": call("clear"),
}
