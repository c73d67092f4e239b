"""The batch of a store: scatter into its sequences, step them together, capture and replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kvspec.operations.table import Operation, argument
from kvspec.session.state import SessionState, call, metered, offered
from kvspec.session.step import Inputs, Step


@contextmanager
def _addresses(session: SessionState, store: Any, step: Step) -> Iterator[None]:
    """Note whether the batch's buffers moved, if there are some before and after, and the adapter tells where."""
    addresses = getattr(store, "addresses", tuple)
    before = tuple(addresses())
    with session.metered(step):
        yield
    after = tuple(addresses())
    if before and after:
        step.values["moved"] = before != after


def batch(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Allocate a batch of m sequences."""
    with _addresses(session, store, step):
        offered(store, "batch")(op["m"], argument(op, "most"))


def scatter(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Copy the store's first n rows into one sequence's place, for one layer or all."""
    with _addresses(session, store, step):
        offered(store, "scatter")(op["sequence"], op["n"], op.get("layer"))


def step(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Append one row `[layers, m, kv_heads, dim]` to every sequence, in every layer."""
    rows = session.handed(op, inputs)
    with _addresses(session, store, step):
        offered(store, "step")(*rows)


def resetbatch(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Set every sequence's length to 0."""
    with _addresses(session, store, step):
        offered(store, "reset_batch")()


def capture(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Capture a step."""
    session.captured[op["name"]] = metered(session, step, store, "capture")


def replay(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Replay the captured step on new rows."""
    work, rows = session.captured[op["name"]], session.handed(op, inputs)
    with _addresses(session, store, step):
        work.replay(*rows)


DO = {
    "batch": batch,
    "scatter": scatter,
    "step": step,
    "resetbatch": resetbatch,
    "freebatch": call("free_batch"),
    "capture": capture,
    "replay": replay,
}
