"""COPY: every copy into small buffers of both layouts. Random traces take larger ones, and positions near powers of
two."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale
from kvspec.geometry import WORDS, Config
from kvspec.operations.table import Operation
from kvspec.session.driver import Session
from kvspec.trace import Trace

POWERS = (1 << 31, 1 << 32, (1 << 40) - 64)
"""Positions at which a 32-bit sum wraps, and some near the largest that a trace can hold."""

LONGEST = 24
"""Most operations of a trace."""


def moves(session: Session) -> list[str]:
    """Give linear and sliding copies, to and beyond every edge; casts, refusals, and moves that change nothing."""
    capacity = session.caches["A"].capacity
    return [*_placed(capacity), *_rows(capacity), "scribble"]


def _placed(capacity: int) -> list[str]:
    """Give copies of every length to every position."""
    linear = [f"copy {n} {at}" for n in range(capacity + 2) for at in range(-1, capacity + 1)]
    far = [f"copy {n} {p - n}" for p in POWERS for n in (1, 2)]
    near = [-1, *range(capacity + 1), 2 * capacity + 1, *(p - 1 for p in POWERS)]
    sliding = [f"copy {n} {at} sliding=1" for n in range(capacity + 3) for at in near]
    return linear + far + sliding


def _rows(capacity: int) -> list[str]:
    """Give sources that are cast, longer or shorter, in the buffer itself, or of another geometry."""
    last = capacity - 1
    casts = [f"copy {n} {last} dtype=f32 fill={f} sliding=1" for n in (1, capacity + 1) for f in ("edges", "bits")]
    plain = [f"copy 1 {last} fill=bits", f"copy {capacity} 0 fill=bits", f"copy 1 {last} dtype=f32"]
    lengths = [f"copy 1 {last} rows=3", f"copy 1 {last} rows=0", f"copy 2 {last} rows=1 sliding=1"]
    inside = [f"alias 1 {last} 0", "alias 1 0 0", f"alias {capacity} 1 0 sliding=1", "alias 0 0 0"]
    misfits = ["kv_heads=4", "k_dim=5", "v_dim=9", "values=2", "k_dim=0 v_dim=0"]
    others = [f"copy 1 {last} dtype={d}" for d in ("bf16", "f16")]
    return [*casts, *plain, *lengths, *inside, *others, *(f"copy 1 {last} {m}" for m in misfits)]


def continuations(session: Session) -> list[str]:
    """Let the caller overwrite its arrays, then copy once more over an edge. Every slot is read after each."""
    last = session.caches["A"].capacity - 1
    return [f"scribble; copy 2 {last} sliding=1; copy 1 {last}; scribble"]


def plans() -> list[Plan]:
    """Plan buffers of up to three slots, each slot written or not."""
    shapes = ((3, "token", "f16", 2), (3, "head", "f16", 3), (2, "head", "bf16", 2), (1, "token", "f32", 1))
    return [_plan(Config(capacity=c, layout=x, dtype=d, kv_heads=h)) for c, x, d, h in shapes]


def _plan(config: Config) -> Plan:
    name = f"copy capacity={config.capacity} layout={config.layout} dtype={config.dtype}"
    return plan(name, Trace("copy", config), moves, continuations, look="copy 0 0")


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any geometry, mostly with small capacities, so that traces meet the edges often."""
    small = st.integers(1, 6)
    return geometry(draw, heads=4).changed(
        capacity=mostly(draw, small, st.integers(7, 40)),
        layout=draw(st.sampled_from(WORDS["layout"])),
    )


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace on one buffer, or on two of different capacity, dtype or layout."""
    config = draw(configs())
    buffers, done = {"A": config}, list[Operation]()
    for _ in range(draw(st.integers(2, LONGEST))):
        if draw(st.integers(0, 11)) == 0:
            changed = draw(_changes())
            buffers["B"] = config.changed(**changed)
            done.append({"op": "open", "cache": "B", **changed})
        name = draw(st.sampled_from(sorted(buffers)))
        done.append(draw(operations(buffers[name])) | ({} if name == "A" else {"cache": name}))
    return Trace("copy", config, tuple(done))


def _changes() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        ({"capacity": 5}, {"dtype": "f16"}, {"dtype": "bf16", "layout": "head"}, {"kv_heads": 3})
    )


@st.composite
def operations(draw: st.DrawFn, config: Config) -> Operation:
    """Draw one operation, mostly a copy that is not refused."""
    kind = draw(st.sampled_from(("linear",) * 4 + ("sliding",) * 5 + ("misfit", "misfit", "alias", "scribble")))
    if kind == "scribble":
        return {"op": "scribble"}
    capacity = config.capacity or 1
    if kind == "alias":
        places = [draw(st.integers(0, capacity - 1)) for _ in range(2)]
        return {"op": "alias", "n": draw(st.integers(0, 2)), "at": places[0], "source": places[1]}
    op: Operation = draw(placed(capacity, sliding=kind == "sliding")) | draw(sourced(config))
    if kind == "misfit":
        return op | draw(_misfits(op["n"]))
    return op | ({"rows": op["n"] + 2} if draw(st.integers(0, 5)) == 0 else {})


def _misfits(n: int) -> st.SearchStrategy[dict[str, int]]:
    short = {"rows": max(0, n - 1)}
    return st.sampled_from(({"kv_heads": 5}, {"k_dim": 17}, {"v_dim": 4}, {"values": n + 1}, short))


@st.composite
def placed(draw: st.DrawFn, capacity: int, sliding: bool) -> Operation:
    """Draw where a copy goes: up to an edge, across it, one beyond it."""
    sizes = (1, 2, capacity - 1, capacity, 0) + ((capacity + 1, 2 * capacity + 1) if sliding else ())
    n = draw(st.sampled_from([max(0, size) for size in sizes]))
    if not sliding:
        last = max(0, capacity - n)
        far = draw(st.sampled_from(POWERS)) - draw(st.sampled_from((n, 0)))
        at = draw(st.sampled_from((last, last, last, 0, last // 2, last + 1, -1, far)))
        return {"op": "copy", "n": n, "at": at}
    near = draw(st.sampled_from((capacity, 2 * capacity, *POWERS)))
    at = draw(st.one_of(st.integers(0, 3 * capacity), st.integers(near - min(near, n + 1), near + 2), st.just(-1)))
    return {"op": "copy", "n": n, "at": at, "sliding": 1}


@st.composite
def sourced(draw: st.DrawFn, config: Config) -> dict[str, Any]:
    """Draw what is copied: mostly with a cast if possible, of values that are hard to cast."""
    dtype = draw(st.sampled_from((None, None, "f32", "f32", "f32", config.dtype, "bf16")))
    fill = draw(st.sampled_from(("legible", "edges", "edges", "bits")))
    return ({} if dtype is None else {"dtype": dtype}) | ({} if fill == "legible" else {"fill": fill})


EXPLORATIONS = (Exploration("copy", (), explored),)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw slots of the buffer."""
    capacity = int(session.caches["A"].config.capacity)
    near = (0, capacity // 2, capacity - 1, random.randrange(capacity))
    found = {"at": random.choice(near), "source": random.choice(near), "over": capacity}
    return found | ({"more": 2 * capacity + 1} if capacity < 150 else {})


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    capacity = scale.size(turn)
    return scale.fields(f"capacity={capacity} layout={WORDS['layout'][turn % 2]}"), ""


WALKS = Moves(
    {
        ("copy",): (
            "copy {n} 0{fill}",
            "copy {n} 1{fill}",
            "copy {n} {at} sliding=1{fill}",
            "copy 1 {at}{fill}",
            "copy {n} {over}",
            "copy {n} 0 v_dim=3",
            "copy {n} 0 dtype=f32 fill=edges",
            "copy 1 {at} rows=3{fill}",
            "copy 2 {at} rows=1",
            "copy {more} {at} sliding=1",
            "alias 1 {at} {source}",
            "alias 2 0 {source}",
            "scribble",
        ),
    },
    _numbers,
    _sized,
)
