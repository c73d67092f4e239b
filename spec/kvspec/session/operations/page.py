"""Paged caches: admit, fork, truncate and drop sequences, and observe the pool."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import Operation, numbers_in
from kvspec.session.arrays import with_batch_axis
from kvspec.session.state import SessionState, call, metered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe lengths and rows of every sequence, and the free pages; also block tables and reference counts, if
    the cache offers them, and what is in flight."""
    step.values["sequences"] = lengths = [int(n) for n in cache.sequences()]
    if "free" in session.observe:
        step.values["free"] = int(cache.free_pages())
    if flying := list(getattr(cache, "transfers", list)()):
        step.values["transfers"] = [int(n) for n in flying]
    in_use = [sequence for sequence, length in enumerate(lengths) if length >= 0]
    if "state" in session.observe:
        for sequence in in_use:
            session.take(step, f"state.{sequence}", cache.read_sequence(sequence), with_batch_axis)
    if "state" in session.observe and hasattr(cache, "table"):
        step.values |= {f"table.{s}": [int(page) for page in cache.table(s)] for s in in_use}
        step.values["references"] = [int(n) for n in cache.references()]
    session.held(cache, step, which)


def admit(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Add a sequence."""
    step.values["sequence"] = int(metered(session, step, cache, "admit"))


def fork(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Add a sequence that shares rows of another."""
    step.values["sequence"] = int(metered(session, step, cache, "fork", op["sequence"], op["n"]))


def gather(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Read rows through a given block table."""
    session.wait()
    found = metered(session, step, cache, "gather", numbers_in(op["table"]), op["n"])
    session.take(step, "gathered", found, with_batch_axis)


def peek(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Read a page of the pool."""
    session.wait()
    session.take(step, "page", metered(session, step, cache, "peek", op["page"]), with_batch_axis)


DO = {
    "admit": admit,
    "fork": fork,
    "truncate": call("truncate", "sequence", "to"),
    "drop": call("drop", "sequence"),
    "gather": gather,
    "peek": peek,
}
