"""Bucketed caches in the list model: `kvref.list_model.bucket`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.oracle.list_model.cache import fits
from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model import attention_bound
from kvref.list_model.bucket import Listed, Rows
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs


def make(kind: str, config: Config, claim: Any) -> Listed:
    """A fresh cache."""
    return Listed(config)


def look(lists: Any, cache: Listed, step: Expected) -> None:
    """The length, and the rows of every layer, all of them and those on the host."""
    cite("BUCKET-21")
    step.values["past"] = cache.past
    for i, (rows, host) in enumerate(zip(cache.layers, cache.host, strict=True)):
        step.rows[f"state.{i}"], step.rows[f"host.{i}"] = rows, host


def _rows(lists: Any, cache: Listed, op: Operation) -> Rows:
    """The serials of what is handed over, layer upon layer. Refuses what does not fit."""
    n = op.get("n", 1)
    if n and not (fits({**op, "n": n}, cache.config) and op.get("layers") in (None, cache.config.layers)):
        raise Refused("BUCKET-3", "rows of another geometry")
    first = lists.trace_inputs.book.next
    return [list(range(first + i * n, first + (i + 1) * n)) for i in range(len(cache.layers))]


def _asked(cache: Listed, op: Operation, n: int) -> None:
    """Refuse queries that do not fit."""
    heads = op.get("heads", cache.config.kv_heads)
    right = heads and heads % cache.config.kv_heads == 0 and argument(op, "splits") > 0
    config = cache.config
    own: dict[str, Any] = {"q_dim": config.k_dim, "q_rows": n, "q_batch": config.batch, "q_dtype": "f32"}
    room: dict[str, Any] = (
        {"out_dim": config.v_dim, "out_rows": n, "out_dtype": "f32"} if argument(op, "into") else {}
    )
    if room and not op.get("resident"):
        room["out_readonly"] = 0
    if not right or any(op.get(name) not in (None, value) for name, value in (own | room).items()):
        raise Refused("BUCKET-6", "queries or an output that do not fit")


def _expect(
    lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs, sees: list[list[list[int]]]
) -> None:
    """The outputs of queries that see so much, layer by layer; nothing where no queries or rows were made."""
    config, kept = cache.config, lists.trace_inputs.book.kept
    if given.queries is None or kept is None:
        return
    found = []
    for queries, layer in zip(given.queries, sees, strict=True):
        through = [[[dict.fromkeys(query, ()) for query in layer]]] * config.batch
        found.append(attention_bound.outputs(queries, through, kept, config.dtype, config.v_dim))
    step.outputs = attention_bound.Output(*(np.stack(parts) for parts in zip(*found, strict=True)))


def prefill(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """New rows on the host."""
    if not op["n"]:
        cite("BUCKET-26")
    cache.prefill(_rows(lists, cache, op))


def bind(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Handles, and no step."""
    cite("BUCKET-13")
    cache.ready(bool(argument(op, "refresh")))


def decode(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """A row more."""
    new = _rows(lists, cache, op)
    _asked(cache, op, 1)
    cache.agreed(op.get("past"))
    cache.ready(bool(argument(op, "refresh")))
    _expect(lists, cache, op, step, given, cache.seen(new))
    cache.decode(new)


def block(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """No row more."""
    if not op["n"] and not op.get("q_rows"):
        cite("BUCKET-26")
        return
    new = _rows(lists, cache, op)
    _asked(cache, op, op["n"])
    cache.agreed(op.get("past"))
    cache.ready(False)
    _expect(lists, cache, op, step, given, cache.seen(new))
    cache.block(op["n"])


def unbind(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Bounds forgotten."""
    cache.unbind()


def sync(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """All rows on the host."""
    cache.sync()


def cut(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Fewer rows."""
    cache.cut(op["to"])


def encode(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Rows for cross-attention."""
    if not op["n"]:
        cite("BUCKET-26")
    cache.encode(_rows(lists, cache, op))


def cross(lists: Any, cache: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """Every query sees all of these."""
    n = op["n"] if op.get("q_rows") is None else op["q_rows"]
    if not n:
        cite("BUCKET-26")
        return
    _asked(cache, op, n)
    _expect(lists, cache, op, step, given, [[rows] * n for rows in cache.cross()])


DO: dict[str, Any] = {
    "prefill": prefill,
    "bind": bind,
    "decode": decode,
    "block": block,
    "unbind": unbind,
    "sync": sync,
    "cut": cut,
    "encode": encode,
    "cross": cross,
}
MODELS: dict[str, Any] = {"bucket": make}
LOOK: dict[str, Any] = {"bucket": look}
