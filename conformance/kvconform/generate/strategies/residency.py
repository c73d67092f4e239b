"""RESIDENCY: rows from device and host, in every state of a small cache and in traces of other chapters.

Costs are judged in every trace of every chapter. This module adds the operations that no other chapter has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies import store
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, name, plan
from kvspec.geometry import Config
from kvspec.operations.table import OPERATIONS, Operation, caches_with
from kvspec.registry import KINDS
from kvspec.session.driver import Session
from kvspec.trace import Trace

BOUND = 4

BATCH = "batch 2; scatter 0 1; resetbatch; step resident=1; step; resetbatch; capture c; replay c; freebatch"
"""Every operation of a batch, with rows from the device too; at the end the batch is freed."""


def moves(session: Session) -> list[str]:
    """Give appends of rows already on the device, operations that cost nothing, and reads."""
    cache = session.caches["A"]
    window = cache.config.window
    sizes = range(window + 2) if window else [n for n in range(4) if cache.offset + n <= BOUND]
    appends = [f"append {n} resident=1" for n in sizes]
    others = [f"rewind {cache.offset - 1}", "rewind 0", "free", "view", "ask 0", "plan 3"]
    saved = f"snapshot s; restore s {cache.offset}; close s"
    return [*appends, *others, "append 2 values=1 resident=1", saved]


def continuations(session: Session) -> list[str]:
    """Append rows from the host and from the device alternately."""
    return ["append 1 resident=1; append 1; append 1 resident=1; view", "append 2; append 2 resident=1; view"]


def store_moves(session: Session) -> list[str]:
    """Give the same moves for a store, and for a batch that is created and dropped."""
    room = session.caches["A"].max_len
    appends = [f"append {n} resident=1" for n in range(room + 2)]
    others = ["append 1 layer=0 resident=1", "rollback 1", "zero", "fingerprint 0", "save s; load s", BATCH]
    return [*appends, *others]


def store_continuations(session: Session) -> list[str]:
    """Give operations that distinguish the states of a store, with rows from host and device."""
    return [*store.continuations(session), "append 1 resident=1; append 1; save s"]


def plans() -> list[Plan]:
    """Plan a small growing cache, rings, and a store with a batch."""
    starts = [Trace("growing", Config(step=2))]
    starts += [Trace("ring", Config(window=w, step=s)) for w, s in ((1, 256), (2, 1), (3, 2))]
    small = Trace("store", Config(layers=1, max_len=2))
    caches = [plan(f"residency {name(t, BOUND)}", t, moves, continuations) for t in starts]
    return [*caches, plan("residency store", small, store_moves, store_continuations, look="append 0")]


@st.composite
def resident(draw: st.DrawFn, /, others: Callable[..., Any], **claimed: Collection[str]) -> Trace:
    """Draw a trace of another chapter, with some of its rows on the device."""
    trace = draw(others(**claimed))
    return Trace(trace.kind, trace.config, tuple(_placed(op, draw(st.booleans())) for op in trace.ops))


def _placed(op: Operation, there: bool) -> Operation:
    takes = any(a.name == "resident" for a in OPERATIONS[op["op"]].arguments)
    return {**op, "resident": 1} if there and takes else op


EXPLORATIONS = (
    *(Exploration(kind, (), resident, over=kind, any_of=((kind,),)) for kind in KINDS),
    Exploration("batch", ("store", "batch"), resident, over="batch"),
    Exploration(
        "attention", ("attention",), resident, over="attention", any_of=((*caches_with("attend"), "store"),)
    ),
)
