"""Speculation in the list model."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.list_model import cache as caches
from kvconform.oracle.list_model.expected import Expected
from kvref.cite import cite
from kvref.list_model.caches import History
from kvref.list_model.draft import Round
from kvspec import masks
from kvspec.errors import Refused
from kvspec.operations.table import Operation, argument, cache_of
from kvspec.refusals import common
from kvspec.session.step import Inputs


def guard(model: Any, op: Operation, step: Expected) -> None:
    """Refuse what a cache does not do while it is in an open round."""
    if not getattr(model, "in_round", False):
        return
    if op["op"] == "rewind":
        step.values["can"] = False
    nothing = op["op"] in ("append", "attend") and op["n"] == 0 and not op.get("q_rows")
    if op["op"] in REFUSED and op.get("round") is None and not nothing:
        raise common.in_round("DRAFT-12", op["op"])


REFUSED = ("append", "attend", "view", "mask", "rewind", "free", "snapshot", "restore", "merge", "split", "plan")
"""Operations that a cache in an open round does not do."""


def speculate(lists: Any, cache: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """A round over the caches named."""
    letters = [letter for letter in op["layers"] if letter != "-"]
    for i, letter in enumerate(letters):
        _demand(lists.caches[letter], i, letters.index(letter))
    isolated = bool(argument(op, "isolated"))
    made = Round({x: lists.caches[x] for x in letters}, isolated, len(letters) == len(op["layers"]))
    former = lists.rounds.get(op["name"])
    if former is not None and not former.over:
        former.abandon()
    lists.rounds[op["name"]] = made


def _demand(model: Any, layer: int, first: int) -> None:
    if not isinstance(model, History):
        raise common.cannot_speculate("DRAFT-16", layer, model.kind)
    if first != layer:
        raise common.twice("DRAFT-15", first, layer)
    if model.in_round:
        raise common.in_round("DRAFT-15", "speculate")


def draft(lists: Any, cache: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """New drafts, and what their queries see."""
    round_ = lists.rounds[op["name"]]
    layer = round_.layer(cache_of(op), "draft")
    rows = lists.trace_inputs.opened_as(op)[1]
    if op["n"] and not (caches.fits(op, layer.config) and rows.shape("k", 0) == layer.config.shape("k", 0)):
        raise Refused("DRAFT-8", "drafts of another geometry")
    first = lists.trace_inputs.book.next
    layer.append(list(range(first, first + op["n"])))
    cite(*(("DRAFT-26", "DRAFT-27") if round_.isolated else ("DRAFT-11",)), "DRAFT-6")
    step.values["drafted"] = layer.offset
    caches.seen_through(layer, step, masks.CAUSAL)


def commit(lists: Any, cache: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """The first n drafts are kept."""
    lists.rounds[op["name"]].commit(op["n"])


def abandon(lists: Any, cache: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """None is."""
    lists.rounds[op["name"]].abandon()


def look(lists: Any, op: Operation, step: Expected) -> None:
    """All caches of a round, after an operation on the whole of it."""
    round_ = lists.rounds.get(op["name"])
    letters = op.get("layers") or "".join(round_.layers if round_ else "")
    for letter in sorted(set(letters) - {"-"}):
        if isinstance(lists.caches.get(letter), History):
            caches.look(lists, lists.caches[letter], step, f".{letter}")


DO = {"speculate": speculate, "draft": draft, "commit": commit, "abandon": abandon}
