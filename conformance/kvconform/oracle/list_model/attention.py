"""Attention in the list model: which rows each query sees, by serial, and `kvref.list_model.attention_bound` for
the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kvconform.oracle.list_model import rope
from kvconform.oracle.list_model.cache import fits, seen_through, take
from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model import attention, attention_bound
from kvref.list_model.attention import Asked, Work
from kvref.list_model.attention_bound import Seen
from kvref.list_model.batch import there
from kvref.list_model.caches import History
from kvref.list_model.rope import Turned, exactly
from kvref.list_model.store import UNKNOWN, Listed
from kvspec import masks
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.operations.table import Operation, argument
from kvspec.refusals import common
from kvspec.rows import ZEROED
from kvspec.session.step import Inputs


def expect(
    lists: Any,
    step: Expected,
    config: Config,
    given: Inputs,
    sees: Sequence[Sequence[Sequence[Seen]]],
    turned: Turned | None = None,
) -> None:
    """The outputs of queries that see so much, `[B][heads or 1][L]`; nothing where no queries were made, or where a
    row is seen that nobody knows. The queries are `turned` where RoPE turned them."""
    known = all(UNKNOWN not in seen for each in sees for queries in each for seen in queries)
    if given.queries is not None and known:
        queries = exactly(given.queries, "f32") if turned is None else turned
        kept, off = _Kept(lists.trace_inputs.book.kept, config), attention_bound.Off(queries.bound, lists.astray)
        step.outputs = attention_bound.outputs(queries.middle, sees, kept, config.dtype, config.v_dim, off)


def _expect_each(
    lists: Any, step: Expected, config: Config, given: Inputs, sees: Sequence[Sequence[Sequence[Seen]]]
) -> None:
    """The same of sequences that have rows of their own each."""
    found: list[attention_bound.Output] = []
    for query, each in zip([] if given.queries is None else given.queries, sees, strict=False):
        expect(lists, step, config, replace(given, queries=query[None]), [each])
        found += [step.outputs] if step.outputs else []
    step.outputs = None
    if len(found) == len(sees):
        step.outputs = attention_bound.Output(*(np.concatenate(a) for a in zip(*found, strict=True)))


def _apart(tokens: Sequence[int]) -> list[int]:
    """The serials, rows of zeros with serials of their own."""
    return [FIRST_OF_ZEROS - i if s == ZEROED else s for i, s in enumerate(tokens)]


FIRST_OF_ZEROS = -100
"""From here down serials stand for rows that nobody wrote, so that there can be several."""


class _Kept:
    """The rows by their serials; a row that nobody wrote is zeros."""

    def __init__(self, kept: dict[int, attention_bound.Rows], config: Config) -> None:
        self.kept, self.config = kept, config

    def __getitem__(self, serial: int) -> attention_bound.Rows:
        if serial > FIRST_OF_ZEROS:
            return self.kept[serial]
        keys, values = (np.zeros(self.config.shape(kind, 1))[:, :, 0] for kind in "kv")
        return keys, values


def of(op: Operation, config: Config, batch: int, n: int) -> Asked:
    """What an operation asks with, by what it says."""

    def said(name: str, own: Any) -> Any:
        return own if op.get(name) is None else op[name]

    rows = said("q_rows", n)
    return Asked(
        shape=(said("q_batch", batch), said("heads", config.kv_heads), rows, said("q_dim", config.k_dim)),
        wanted=(batch, None, n, config.k_dim),
        dtype=said("q_dtype", "f32"),
        splits=argument(op, "splits") if op["op"] != "replayattend" else 1,
        logical=masks.from_json(list(argument(op, "through"))) if op["op"] == "attend" else masks.CAUSAL,
        room=op["op"] != "replayattend" and bool(argument(op, "into")),
        room_fits=op.get("out_rows") in (None, rows)
        and op.get("out_dim") in (None, config.v_dim)
        and op.get("out_dtype") in (None, "f32")
        and (not op.get("out_readonly") or bool(op.get("resident"))),
    )


def answered(op: Operation, step: Expected, asked: Asked) -> None:
    """What is owed of any attend that is not refused, and what its caller finds of a given output."""
    asked.cite()
    if asked.room and op.get("resident"):
        del step.values["intact"]


def nothing(op: Operation) -> bool:
    """Whether an attend has neither rows nor queries."""
    return op["op"] == "attend" and op["n"] == 0 and not op.get("q_rows")


def none(lists: Any, op: Operation, step: Expected, given: Inputs, config: Config) -> None:
    """The output of no queries."""
    cite("ATTN-12")
    if op.get("resident"):
        step.values.pop("intact", None)
    batch = config.batch if given.queries is None else given.queries.shape[0]
    expect(lists, step, config, given, [[[]]] * batch)


def attend(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Append, then what each query sees through the mask, beside what the cache itself hides."""
    if argument(op, "into"):
        step.values["intact"] = True  # of what is refused too
    if nothing(op):
        take(lists, cache, op)
        seen_through(cache, step, masks.CAUSAL)
        none(lists, op, step, given, cache.config)
        return
    if not fits(op, cache.config):
        raise Refused("RING-13" if cache.ring else "GROW-10", "rows of another geometry")
    asked = of(op, cache.config, cache.config.batch, op["n"])
    asked.demand(cache.config, attention.rows_held(cache, op["n"]))
    turned = rope.at_positions(lists, op, cache.config, given, cache.offset)
    take(lists, cache, op)
    if not cache.in_round:
        seen_through(cache, step, masks.CAUSAL)
    sees = asked.sees(cache.config.batch, cache.offset, cache.tokens, cache.visible if cache.ring else None)
    cite("ATTN-1", *(["ATTN-6"] if cache.ring else []), *(["ROPE-20"] if cache.ring and op.get("rope") else []))
    answered(op, step, asked)
    expect(lists, step, cache.config, given, sees, turned)


def of_layer(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """One layer of a store."""
    n = op["n"]
    if argument(op, "into"):
        step.values["intact"] = True
    if nothing(op):
        none(lists, op, step, given, store.config)
        return
    layer = op.get("layer")
    (meant,) = store.meant(-1 if layer is None else layer)
    if not fits(op, store.config):
        raise common.geometry("STORE-10", "attend")
    if meant.length + n > store.room:
        raise common.overflow("STORE-8", layer or 0, meant.length, n, store.room)
    asked = of(op, store.config, 1, n)
    asked.demand(store.config, meant.length + n)
    turned = rope.at_positions(lists, op, store.config, given, meant.length)
    _append(lists, store, op, layer)
    cite("ATTN-1", "ATTN-16")
    answered(op, step, asked)
    expect(lists, step, store.config, given, asked.sees(1, meant.length, _apart(meant.live())), turned)


def _append(lists: Any, store: Listed, op: Operation, layer: int | None) -> None:
    first, n = lists.trace_inputs.book.next, op.get("n", 1)
    if n:
        store.append(layer, [list(range(first, first + n))])


def attendbatch(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """What a layer holds of each sequence."""
    if argument(op, "into"):
        step.values["intact"] = True
    if op.get("q_rows") == 0:
        none(lists, op, step, given, store.config)
        return
    batch, layer = there(store.batch, "attend"), op["layer"]
    if layer not in range(batch.layers):
        raise common.layer("BATCH-9", layer, batch.layers)
    attention.whole(batch, layer)
    asked = of(op, store.config, len(batch.all), 1)
    asked.demand(store.config, 0)
    blind: list[list[Seen]] = [[{}]]
    sees = [asked.sees(1, one.length, _apart(one.rows[layer]))[0] if one.length else blind for one in batch.all]
    cite("ATTN-17", *(["ATTN-18", "ATTN-10"] if not all(one.length for one in batch.all) else []))
    answered(op, step, asked)
    _expect_each(lists, step, store.config, given, sees)


def captureattend(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """An attend of one row, captured."""
    store.meant(op["layer"])
    asked = of({**op, "op": "attend"}, store.config, 1, 1)
    asked.demand_how(store.config)
    cite("ATTN-20")
    lists.names["captured attention"][op["name"]] = store, Work(store.began, op["layer"], asked)


def replayattend(lists: Any, store: Listed, op: Operation, step: Expected, given: Inputs) -> None:
    """The attend, on the store it was captured on."""
    owner, work = lists.names["captured attention"][op["name"]]
    work.replayable(owner.began)
    (meant,) = owner.meant(work.layer)
    if not fits({**op, "n": 1}, owner.config):
        raise common.geometry("STORE-10", "replay")
    if meant.length == owner.room:
        raise common.overflow("STORE-8", work.layer, meant.length, 1, owner.room)
    asked = of({"heads": work.asked.heads, **op}, owner.config, 1, 1).as_captured(work.asked)
    asked.demand(owner.config, meant.length + 1)
    _append(lists, owner, op, work.layer)
    cite("ATTN-1", "ATTN-16", "ATTN-21")
    answered(op, step, asked)
    expect(lists, step, owner.config, given, asked.sees(1, meant.length, _apart(meant.live())))


ATTEND: dict[str, Any] = {"store": of_layer}
DO: dict[str, Any] = {
    "attend": attend,
    "attendbatch": attendbatch,
    "captureattend": captureattend,
    "replayattend": replayattend,
}
