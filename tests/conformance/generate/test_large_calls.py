"""Large traces of many calls: each operation that takes rows is called hundreds of times on one cache of each kind,
and one call that goes wrong among them is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import having
from kvconform.generate.large.boundaries import sizes
from kvconform.generate.large.calls import AT_ONCE, ATTENDS, CALLS, MANY, RECIPES, SLOW
from kvconform.judge import trial
from kvspec.contract import description
from kvspec.geometry import Array
from kvspec.operations.table import ARGUMENTS, OF_KIND, RUN, Operation, caches_with, each_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in

NAMES = {(recipe.chapter, recipe.size) for recipe in RECIPES}


def traces() -> Iterator[Trace]:
    """Those of many calls."""
    yield from (t for s in sizes() if (s.chapter, s.name) in NAMES for _, t in s.traces(0))


def calls(ops: tuple[Operation, ...] | list[Operation]) -> Counter[str]:
    """How often each operation is called."""
    found = Counter[str]()
    for op in ops:
        inner = calls(op["ops"]) if op["op"] == RUN.name else Counter((op["op"],))
        found.update({name: n * op.get("times", 1) for name, n in inner.items()})
    return found


def takes_rows(kind: str) -> set[str]:
    """The operations of a kind that take rows for its cache, token by token."""
    return {name for name in OF_KIND[kind] if "fill" in ARGUMENTS[name]} - ONCE


ONCE = {
    "rotate",
    "prefill",
    "encode",
    "cross",
    "attendbatch",
    "replay",
    "replayattend",
    "captureattend",
}
"""They have no cache, or are done once for a request, or do what other operations do."""


def test_each_operation_that_takes_rows_is_called_often_on_each_kind() -> None:
    most = Counter[tuple[str, str]]()
    for trace in traces():
        for name, n in calls(trace.ops).items():
            most[trace.kind, name] = max(most[trace.kind, name], n)
    for kind in OF_KIND:
        few = {name: most[kind, name] for name in takes_rows(kind) if most[kind, name] < SLOW}
        assert not few, (kind, few)
    assert all(most[kind, "attend"] >= ATTENDS[kind] for kind in caches_with("attend"))
    assert all(most[kind, "append"] >= CALLS for kind in OF_KIND if "append" in OF_KIND[kind])


def calling_wrongly(kind: str, method: str, call: int) -> Any:
    """The reference, but that one call of a cache takes its rows the other way round, or twice a single one."""
    right = getattr(Reference.caches[kind], method)

    def wrong(self: Any, *arguments: Any, **options: Any) -> Any:
        self.called = getattr(self, "called", 0) + 1
        given = [turned(a) if self.called == call else a for a in arguments]
        return right(self, *given, **options)

    return having(**{kind: type("Wrong", (Reference.caches[kind],), {method: wrong})})()


def turned(argument: Any) -> Any:
    """Rows in another order; a single one is another."""
    if not isinstance(argument, np.ndarray) or argument.ndim < 3:
        return argument
    rows = argument.shape[-2]
    return argument[..., ::-1, :].copy() if rows > 1 else argument + argument


def of_the_first_head(kind: str, method: str, call: int) -> Any:
    """The reference, but that one call of a cache gives the last head the rows of the first."""
    right = getattr(Reference.caches[kind], method)

    def wrong(self: Any, *arguments: Any, **options: Any) -> Any:
        self.called = getattr(self, "called", 0) + 1
        given = [one_head(a) if self.called == call else a for a in arguments]
        return right(self, *given, **options)

    return having(**{kind: type("Wrong", (Reference.caches[kind],), {method: wrong})})()


def one_head(argument: Any) -> Any:
    """Rows whose last head is the first."""
    if not isinstance(argument, np.ndarray) or argument.ndim < 3:
        return argument
    made = argument.copy()
    made[..., -1, :, :] = made[..., 0, :, :]
    return made


def first_for_last(kind: str) -> Any:
    """The reference, but that of many queries the last gets what the first gets."""
    right = Reference.caches[kind].attend

    def attend(self: Any, queries: Array, *arguments: Any, **options: Any) -> Any:
        made = right(self, queries, *arguments, **options)
        if queries.shape[-2] >= MANY:
            made[..., -1, :] = made[..., 0, :]
        return made

    return having(**{kind: type("Wrong", (Reference.caches[kind],), {"attend": attend})})()


def found(adapter: Any, kind: str) -> bool:
    """Whether the traces of many calls show that an adapter is wrong."""
    about = description(adapter.describe())
    return any(trial.on(t, lambda seen: Session(adapter, seen), about).failed for t in traces() if t.kind == kind)


CALLED = (
    *((kind, "append", 130) for kind in ("growing", "ring", "bounded", "sink", "layers", "store", "page")),
    *((kind, "append", 300) for kind in ("growing", "ring", "bounded", "sink", "layers", "store", "page")),
    *((kind, "attend", n) for kind, n in (("growing", 130), ("ring", 130), ("store", 65), ("page", 65))),
    *(("store", "step", 130), ("ragged", "feed", 130), ("bucket", "decode", 65), ("bucket", "block", 33)),
    *(("keyed", "compute", 65), ("keyed", "answer", 130)),
)


@pytest.mark.parametrize(("kind", "method", "call"), one_in(3, CALLED))
def test_one_wrong_call_among_many_is_found(kind: str, method: str, call: int) -> None:
    assert found(calling_wrongly(kind, method, call), kind)


@pytest.mark.parametrize(
    ("kind", "method", "call"), one_in(3, [each for each in CALLED if each[0] != "keyed"][::-1])
)
def test_a_call_that_takes_one_head_for_the_other_is_found(kind: str, method: str, call: int) -> None:
    assert found(of_the_first_head(kind, method, call), kind)


def test_thousands_of_rows_at_once_have_two_heads() -> None:
    given = [t for t in traces() if any(part.get("n") == AT_ONCE for op in t.ops for part in each_of(op))]
    assert len({t.kind for t in given}) >= 9
    assert all(t.config.kv_heads == 2 for t in given)


@pytest.mark.parametrize("kind", caches_with("attend"))
def test_many_queries_at_once_are_told_apart(kind: str) -> None:
    assert found(first_for_last(kind), kind)


@pytest.mark.parametrize("kind", sorted({trace.kind for trace in traces()}))
def test_the_reference_is_not_accused(kind: str) -> None:
    assert not found(Reference(), kind)


def test_all_that_was_appended_is_there_at_the_end() -> None:
    """A window or a room that ends earlier would hide what a call did."""
    rows = [t for t in traces() if t.kind in ("ring", "sink", "bounded") and "append" in calls(t.ops)]
    assert len(rows) >= 3
    for trace in rows:
        room = (trace.config.window or 0) + (trace.config.max_len or 0)
        appended = sum(n * 2 for name, n in calls(trace.ops).items() if name == "append")
        assert room >= appended - 2, trace
