"""The store in the list model: `kvref.list_model.store`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvconform.oracle.list_model import batch
from kvconform.oracle.list_model.cache import fits
from kvconform.oracle.list_model.expected import Expected
from kvref.list_model.store import UNKNOWN, Listed, Saved
from kvspec import fingerprint as sums
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument
from kvspec.refusals import common
from kvspec.session.step import Inputs


def make(kind: str, config: Config, claim: Any) -> Listed:
    """A fresh store."""
    return Listed(config)


def look(lists: Any, store: Listed, step: Expected) -> None:
    """Lengths and live rows of every layer."""
    step.values["lengths"] = [layer.length for layer in store.layers]
    for i, layer in enumerate(store.layers):
        _expect(step, f"state.{i}", layer.live())
    batch.look(lists, store, step)


def _expect(step: Expected, name: str, serials: list[int]) -> None:
    """These rows, where all of them are known."""
    if UNKNOWN not in serials:
        step.rows[name] = serials


def append(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """A new row for each layer meant, layer upon layer."""
    n, layer = op["n"], op.get("layer")
    if n == 0:
        store.nothing()
        return
    meant = len(store.meant(layer))
    if not fits(op, store.config):
        raise common.geometry("STORE-10", "append")
    first = lists.trace_inputs.book.next
    serials = [list(range(first + i * n, first + (i + 1) * n)) for i in range(meant)]
    store.append(layer, serials)
    if argument(op, "fill") == "bits":
        store.odd.update(s for each in serials for s in each)


def init(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Initialise again."""
    assert given.opening is not None
    store.init(given.opening[1])


def reset(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Every length to 0."""
    store.reset()


def zero(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Every length to 0, and the rows cleared."""
    store.zero()


def rollback(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Lower every longer layer; or one sequence of the batch."""
    if op.get("sequence") is None:
        store.rollback(op["to"])
    else:
        batch.rollback(lists, store, op, step, given)


def setlength(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """The length of one layer."""
    store.set_length(op["layer"], op["n"])


def save(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """A host snapshot; `odd` goes with it, since it may be loaded into another store."""
    saved = store.save()
    lists.names["saved store"][op["name"]] = saved, frozenset(store.odd)
    for i, serials in enumerate(saved.layers):
        _expect(step, f"saved.{i}", serials)


def load(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """A host snapshot back, changed as the operation says."""
    saved, odd = lists.names["saved store"][op["name"]]
    store.load(altered(saved, op))
    store.odd |= odd


def altered(saved: Saved, op: Operation) -> Saved:
    """Fewer or more layers, the last one over and over; another geometry, of rows that nobody knows by a name."""
    count = op.get("layers", len(saved.layers))
    layers = (saved.layers + [saved.layers[-1]] * count)[:count]
    changes = {n: op[n] for n in ("kv_heads", "k_dim", "v_dim", "dtype") if op.get(n) is not None}
    config = saved.config.changed(**changes)
    if config != saved.config:
        layers = [[UNKNOWN] * len(serials) for serials in layers]
    return replace(saved, layers=layers, config=config, values=op.get("values"))


def fingerprint(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """The sum over a key row; of rows that were kept because somebody attends to them, over the row kept."""
    found = store.fingerprint(op["position"])
    serial = store.layers[0].row(op["position"])
    kept = (lists.trace_inputs.book.kept or {}).get(serial)
    if kept is not None:
        found = None if serial in lists.astray else sums.text(sums.exact(kept[0][0, 0]))
    if found is not None:
        step.values["fingerprint"] = found


DO: dict[str, Any] = {
    "init": init,
    "reset": reset,
    "zero": zero,
    "rollback": rollback,
    "setlength": setlength,
    "save": save,
    "load": load,
    "fingerprint": fingerprint,
}
MODELS: dict[str, Any] = {"store": make}
LOOK: dict[str, Any] = {"store": look}
APPEND: dict[str, Any] = {"store": append}
