"""Operations on a store of many layers; observes the store and its batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.geometry import Array, Pair
from kvspec.operations.table import Operation
from kvspec.rows import fingerprint as sums
from kvspec.session.arrays import with_batch_axis
from kvspec.session.state import SessionState, call, metered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, store: Any, step: Step, which: str = "") -> None:
    """Observe lengths and rows of every layer, and of every sequence of a batch."""
    step.values["lengths"] = [int(n) for n in store.lengths()]
    sequences = store.sequences() if hasattr(store, "sequences") else None
    step.values["sequences"] = None if sequences is None else [int(n) for n in sequences]
    if "state" in session.observe:
        for layer in range(len(step.values["lengths"])):
            session.take(step, f"state.{layer}", store.read(layer), with_batch_axis)
            for sequence in range(len(sequences or ())):
                rows = store.read_sequence(layer, sequence)
                session.take(step, f"batch.{layer}.{sequence}", rows, with_batch_axis)
    session.held(store, step, which)


def init(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Initialise the store again, with the operation's geometry."""
    assert inputs.opening is not None
    with session.metered(step):
        store.init(inputs.opening[1])


def rollback(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Lower every layer longer than `to`; or one sequence of the batch."""
    sequence = op.get("sequence")
    if sequence is None:
        metered(session, step, store, "rollback", op["to"])
    else:
        metered(session, step, store, "rollback_sequence", sequence, op["to"])


def save(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Save a host snapshot: rows `[kv_heads, length, dim]` of each layer."""
    saved = metered(session, step, store, "save")
    for layer, pair in enumerate(saved):
        session.take(step, f"saved.{layer}", pair, with_batch_axis)
    session.saved[op["name"]] = [session.copied(pair) for pair in saved]


def load(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Load the host snapshot, or an altered copy of it."""
    saved = altered(session, session.saved[op["name"]], op)
    for pair in saved:
        for a in pair:
            session.keep(a)
    metered(session, step, store, "load", saved)


def altered(session: SessionState, saved: list[Any], op: Operation) -> list[Any]:
    """Change the rows of a host snapshot as a `load` says: fewer or more layers, other sizes, another dtype. What
    is missing is filled with zeros."""
    layers = op.get("layers", len(saved))
    more = [saved[-1] if saved else _nothing()] * layers
    return [_altered(session, op, *pair) for pair in (saved + more)[:layers]]


def _nothing() -> Pair:
    empty: Array = np.zeros((1, 0, 1), np.float16)
    return Pair(empty, empty)


def _altered(session: SessionState, op: Operation, keys: Any, values: Any) -> Pair:
    def changed(rows: Any, dim: str, count: int) -> Any:
        heads, _, own = rows.shape
        shape = op.get("kv_heads", heads), count, op.get(dim, own)
        return session.resized(rows, shape, op.get("dtype"))

    more = op.get("values", values.shape[1])
    return Pair(changed(keys, "k_dim", keys.shape[1]), changed(values, "v_dim", more))


def fingerprint(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Sum the key row of layer 0, head 0 at a position."""
    found = metered(session, step, store, "fingerprint", op["position"])
    if found is not None:  # the list model does not know the sum of every row
        step.values["fingerprint"] = sums.text(found)


DO = {
    "init": init,
    "reset": call("reset"),
    "zero": call("zero"),
    "rollback": rollback,
    "setlength": call("set_length", "layer", "n"),
    "save": save,
    "load": load,
    "fingerprint": fingerprint,
}
