"""MEM: plans before every append of a small cache, and before those in the random traces of other chapters."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies import store
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, name, plan, rewinds
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.geometry import Config
from kvspec.operations.table import OF_KIND, Operation
from kvspec.registry import KINDS
from kvspec.session.driver import Session
from kvspec.trace import Trace

BOUND = 6
"""Largest offset in the cover of a growing cache: past a growth that cuts first."""


def moves(session: Session) -> list[str]:
    """Give appends with their plans, and the moves that change which plan is right."""
    cache = session.caches["A"]
    window = cache.config.window
    sizes = range(window + 3) if window else [n for n in range(5) if cache.offset + n <= BOUND]
    planned = [f"plan {n}; append {n}" for n in sizes]
    return [*planned, *rewinds(cache.offset, near=bool(window)), "free", "append 2 k_dim=3"]


def store_moves(session: Session) -> list[str]:
    """Give the same moves of a store, and batches of different sizes, created and dropped."""
    room = session.caches["A"].max_len
    planned = [f"plan {n}; append {n}" for n in range(room + 2)]
    return [*planned, "setlength 0 1", "reset", "init", "batch 2; batch 1; plan 1; batch 3; freebatch"]


def store_continuations(session: Session) -> list[str]:
    """Give operations that distinguish the states of a store, and a plan."""
    return [*store.continuations(session), "plan 2; plan 1; append 1"]


def continuations(session: Session) -> list[str]:
    """Give plans that distinguish states, each with its append."""
    return ["plan 2; plan 1; append 1; plan 2; append 2"]


def plans() -> list[Plan]:
    """Plan small growing caches, rings and a store."""
    sizes = ((1, 256), (2, 1), (2, 256), (3, 1), (3, 2))
    starts = [Trace("growing", Config(step=3))]
    starts += [Trace("ring", Config(window=w, step=s)) for w, s in sizes]
    small = Trace("store", Config(layers=1, max_len=2))
    caches = [plan(f"mem {name(t, BOUND)}", t, moves, continuations) for t in starts]
    return [*caches, plan("mem store", small, store_moves, store_continuations, look="append 0")]


FREE = (0, 1, 3_500_000_000, 3_500_000_001, 1 << 32, 1 << 40, 1 << 62)
SIZES = (0, 1, 2, 3, 7, 64, 1 << 16)


@st.composite
def fits(draw: st.DrawFn) -> Operation:
    """Ask what fits in memory, near the numbers at which the answer changes."""
    op: Operation = {"op": "fit", "free": draw(st.sampled_from(FREE) | st.integers(0, 1 << 20))}
    for field in ("layers", "max_len", "kv_heads", "k_dim", "v_dim"):
        if draw(st.booleans()):
            op[field] = draw(st.sampled_from(SIZES))
    if draw(st.booleans()):
        edges = (0, 1, op["free"], min(op["free"] + 1, 1 << 62), 1 << 62)
        op["reserve"] = draw(st.sampled_from(edges) | st.integers(0, 1 << 20))
    if draw(st.booleans()):
        op["most"] = draw(st.sampled_from((-1, 0, 1, 2, 31, 33, 1 << 31)))
    return op | {f: draw(st.sampled_from(("f32", "bf16"))) for f in ("dtype",) if draw(st.booleans())}


@st.composite
def with_plans(draw: st.DrawFn, /, others: Callable[..., Any], **claimed: Collection[str]) -> Trace:
    """Draw a trace of another chapter, with plans before its appends and questions between."""
    trace = draw(others(**claimed))
    done: list[Operation] = []
    asks = fits() if "fit" in OF_KIND[trace.kind] else st.builds(dict, op=st.just("plan"), n=st.integers(0, 9))
    for op in trace.ops:
        appends = op["op"] in ("append", "copy") and "plan" in OF_KIND[trace.kind]
        if draw(st.integers(0, 3)) >= (1 if appends else 3):
            ahead = {"op": "plan", "n": op["n"]} if appends else draw(asks)
            named = "cache" in op and op["op"] != "open"
            done.append({**ahead, "cache": op["cache"]} if named else ahead)
        done.append(op)
    return Trace(trace.kind, trace.config, tuple(done))


PLANNED = {"plan", "fit"}
"""Operations of the chapter: a kind has one of them or both."""

EXPLORATIONS = (
    *(
        Exploration(kind, (), with_plans, over=kind, any_of=((kind,),))
        for kind in KINDS
        if PLANNED & {*OF_KIND[kind]}
    ),
    Exploration("batch", ("store", "batch"), with_plans, over="batch"),
)

WALKS = Moves({("growing", "ring", "store", "page"): ("plan {n}",)})
