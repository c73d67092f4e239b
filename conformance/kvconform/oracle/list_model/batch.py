"""The batch of a store in the list model: `kvref.list_model.batch`. The store's model has it as `batch`."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.list_model.cache import fits
from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model import batch as listed_batch
from kvref.list_model.batch import Work, there
from kvref.list_model.store import UNKNOWN, Listed
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs


def look(lists: Any, store: Listed, step: Expected) -> None:
    """The length of each sequence, and its rows in every layer."""
    if store.batch is None:
        step.values["sequences"] = None
        return
    step.values["sequences"] = [one.length for one in store.batch.all]
    for s, one in enumerate(store.batch.all):
        for layer, serials in enumerate(one.rows):
            if UNKNOWN not in serials:
                step.rows[f"batch.{layer}.{s}"] = serials


def batch(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Allocate for m sequences."""
    most = argument(op, "most")
    store.batch = listed_batch.made(store.batch, op["m"], most, len(store.layers), store.room)


def scatter(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """The first rows of the store's layers."""
    layers = [layer.live() for layer in store.layers]
    there(store.batch, "scatter").scatter(op["sequence"], op["n"], op.get("layer"), layers)


def step(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """A new row for each sequence, layer upon layer."""
    found = there(store.batch, "step")
    m, first = len(found.all), lists.trace_inputs.book.next
    serials = [list(range(first + i * m, first + (i + 1) * m)) for i in range(found.layers)]
    found.step(serials, fits({**op, "n": 1}, store.config))


def rollback(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """One sequence."""
    there(store.batch, "rollback of a sequence").rollback(op["sequence"], op["to"])


def resetbatch(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Every sequence's length to 0."""
    there(store.batch, "reset").reset()


def freebatch(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """No batch."""
    cite("BATCH-20")
    store.batch = None


def capture(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """A step, captured."""
    lists.names["captured work"][op["name"]] = store, Work(there(store.batch, "capture"))


def replay(lists: Any, store: Listed, op: Operation, expected: Expected, given: Inputs) -> None:
    """The step, on the store it was captured on."""
    owner, work = lists.names["captured work"][op["name"]]
    work.replayable(owner.batch)
    step(lists, owner, op, expected, given)
    cite("BATCH-24", "BATCH-25")


DO: dict[str, Any] = {
    "batch": batch,
    "scatter": scatter,
    "step": step,
    "resetbatch": resetbatch,
    "freebatch": freebatch,
    "capture": capture,
    "replay": replay,
}
