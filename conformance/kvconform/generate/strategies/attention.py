"""ATTN: attends from every state of small caches, stores and batches. Random ones are in `attention_random`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.attention_random import explored
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.walk_moves import Moves
from kvspec import notation
from kvspec.chapters import CHAPTERS
from kvspec.geometry import Config
from kvspec.operations.table import Operation, caches_with, listed
from kvspec.session.driver import Session
from kvspec.trace import Trace

Texts = Callable[[Session], list[str]]
"""Gives operations in words, by what a session has come to."""

BOUND = 3
"""Largest offset of growing caches."""

DEAD = "append 2 fill=bits; rewind {}"
"""Rows of arbitrary bits behind the offset: no query may see them."""

REFUSED = (
    *("attend 1 k_dim=9", "attend 2 values=1", "attend 1 dtype=f32", "attend 1 batch=2"),
    *("attend 1 q_dim=9", "attend 1 q_rows=2", "attend 2 q_rows=1", "attend 0 q_rows=1", "attend 1 q_dtype=f16"),
    *("attend 1 heads=3", "attend 1 heads=0", "attend 1 splits=0", "attend 1 splits=-7"),
    *("attend 1 into=1 out_dim=7", "attend 2 into=1 out_rows=1", "attend 1 into=1 out_dtype=f16"),
    *("attend 0 heads=3 splits=0 k_dim=9", "attend 0 into=1"),
)
"""Attends that any cache refuses, and attends of no rows, some with misfits too."""


def mask(n: int, rows: int, kind: str = "10") -> str:
    """Make an explicit mask for n queries over `rows` rows: `kind` repeated, shifted by one in each query."""
    return "/".join("".join(kind[(i + j) % len(kind)] for j in range(rows)) for i in range(n))


def held(session: Session, n: int) -> int:
    """Count the rows that the cache holds after an append of n."""
    return int(session.caches["A"].held_after(n))


def cache_moves(session: Session) -> list[str]:
    """Give attends that change the state, dead rows behind the newest, rewinds, and moves that change nothing."""
    cache = session.caches["A"]
    window = cache.config.window
    sizes = range(1, window + 2) if window else [n for n in (1, 2) if cache.offset + n <= BOUND]
    on = [f"attend {n} heads=4" for n in sizes]
    small = not window or cache.offset + 2 <= window
    dead = [DEAD.format(cache.offset)] if small and cache.offset + 2 <= BOUND else []
    back = [f"rewind {to}" for to in (cache.offset - 1, 0)]
    wide = [f"attend {n} through {mask(n, held(session, n) + 1)}" for n in (1, 2)]
    bad = [f"attend 2 through {mask(1, held(session, 2))}", f"attend 1 heads=4 through {mask(1, 1)},1,1"]
    return [*on, *dead, *back, "free", *REFUSED, *wide, *bad, "scribble", "attend 0"]


def cache_continuations(session: Session) -> list[str]:
    """Give attends through every kind of mask, with one split and with two."""
    one, two = held(session, 1), held(session, 2)
    scores = "[" + " ".join(str(j % 3 - 1) for j in range(one)) + "]"
    return [
        f"attend 1 heads=4 into=1 through {scores} & {mask(1, one)}; attend 2 splits=2 queries=huge; view",
        f"attend 2 through {mask(2, two)} & causal; attend 1 through 0; attend 2 through window=2",
    ]


UNSCORED = ("attend 1 scale=0", "attend 1 scale=-256", "attend 1 softcap=-1", "attend 0 scale=0 softcap=-1")
"""Attends by a scale or a softcap that any cache refuses, and one of no rows."""


def scored_moves(session: Session) -> list[str]:
    """Give attends by a scale, by a softcap and by both, rewinds, and attends that are refused."""
    return _attends(
        session, "1{} scale=64", "1{} heads=4 softcap=2", "2{} scale=1024 softcap=30 splits=2", refused=UNSCORED
    )


def _attends(session: Session, *ways: str, refused: Collection[str]) -> list[str]:
    """Give attends in these ways where there is room, a rewind, and attends that are refused. A store is asked on
    its first layer, which stands in the place of the braces."""
    cache = session.caches["A"]
    layer = " layer=0" if cache.config.layers else ""
    fits = cache.config.layers or cache.config.window or cache.offset + 2 <= BOUND
    back = "rollback 0" if layer else "rewind 0"
    return [*(f"attend {way.format(layer)}" for way in ways if fits), back, *(f"{text}{layer}" for text in refused)]


def scored_continuations(session: Session) -> list[str]:
    """Give attends by both beside a mask, and by one; in a store on either layer."""
    room = session.caches["A"].config.max_len
    if room:
        full = f"setlength 0 {room}; rollback 0"
        return [f"{full}; attend 1 layer=0 softcap=1; attend 1 layer=1 scale=16 softcap=5 into=1"]
    scores = "[" + " ".join(str(j % 3 - 1) for j in range(held(session, 1))) + "]"
    return [
        f"attend 1 heads=4 into=1 scale=16 softcap=5 through {scores} & causal; attend 1 queries=huge softcap=1"
    ]


STORE = (
    *("attend 1 layer=-1", "attend 1 layer=2", "attend 1", "attend 1 layer=0 k_dim=9", "attend 1 layer=0 values=2"),
    *("attend 1 layer=0 heads=3", "attend 1 layer=0 splits=0", "attend 1 layer=0 q_dim=9", "attend 0 layer=9"),
    *("captureattend w 2", "captureattend w -1", "captureattend w 0 heads=3", "captureattend w 0 splits=0"),
    *("attendbatch 0", "init", "scribble"),
)


def store_moves(session: Session) -> list[str]:
    """Give attends on both layers, one of them too long, and captured ones replayed after lengths change."""
    room = session.caches["A"].max_len
    on = [f"attend {n} heads=4 layer={x}" for n in range(1, room + 1) for x in (0, 1)]
    full = [f"attend {room + 1} layer=0", f"attend {room + 1} layer=1 into=1"]
    other = ["append 1 fill=bits", "rollback 0", "setlength 0 1; setlength 1 0", "zero"]
    captured = [
        "captureattend w 0 heads=4 splits=2; replayattend w",
        "captureattend w 1; rollback 0; replayattend w",
        "captureattend w 1; zero; replayattend w; replayattend w queries=huge; replayattend w",
    ]
    dropped = f"captureattend w 0; init; replayattend w k_dim=9; init max_len={room + 1}; replayattend w"
    again = f"{dropped}; init max_len={room}; replayattend w; replayattend w heads=4"
    return [*on, *full, *other, *STORE, *captured, again]


def store_continuations(session: Session) -> list[str]:
    """Show every row of both layers, live or not, and after one more row in each."""
    room = session.caches["A"].max_len
    each = "attend 1 layer=0; attend 1 heads=4 layer=1 into=1"
    all_ = f"setlength 0 {room}; setlength 1 {room}"
    return [f"{all_}; rollback 0; {each}; rollback 0; captureattend v 1; replayattend v; replayattend v"]


def batch_moves(session: Session) -> list[str]:
    """Give moves that change the batch of a full store, and attends that are refused."""
    store = session.caches["A"]
    if store.lengths_[0] < store.max_len:
        return [f"append {store.max_len}"]
    if store.batch_ is None:
        return ["batch 2", "attendbatch 0", "attendbatch 0 q_rows=0"]
    m, layers = len(store.batch_.lengths), range(len(store.lengths_))
    scatters = [f"scatter {s} {n}" for s in range(m) for n in range(store.max_len + 1)]
    parts = [f"scatter {m - 1} {store.max_len} layer={x}" for x in layers]
    bits = f"append 0; rollback 0; append {store.max_len} fill=bits; scatter {m - 1} {store.max_len}"
    gone = f"{bits}; rollback 0 sequence={m - 1}; rollback 0; append {store.max_len}"
    refused = [f"attendbatch {x} {y}" for x, y in ((-1, ""), (len(layers), ""), (0, "q_batch=1"), (0, "q_rows=2"))]
    refused += [f"attendbatch 0 {y}" for y in ("q_dim=9", "heads=3", "heads=0", "splits=0", "into=1 out_dim=9")]
    return [*scatters, *parts, gone, "step", f"rollback 1 sequence={m - 1}", "resetbatch", *refused]


def batch_continuations(session: Session) -> list[str]:
    """Attend with every sequence in every layer, and again after a step."""
    layers = range(len(session.caches["A"].lengths_))
    looks = "; ".join(f"attendbatch {x} heads=4 into=1" for x in layers)
    return [f"{looks}; step; {looks}; resetbatch; step; attendbatch 0 splits=2"]


def plans() -> list[Plan]:
    """Plan a growing cache, rings, a store and batches."""
    caches = [Trace("growing", Config(step=2, v_dim=5))]
    caches += [Trace("ring", Config(window=w, step=s, v_dim=5)) for w, s in ((1, 256), (2, 1), (3, 2))]
    store = Trace("store", Config(layers=2, max_len=1, v_dim=5))
    larger = Trace("store", Config(layers=2, max_len=3, v_dim=5))
    batches = [Trace("store", Config(layers=x, max_len=3 - x, v_dim=5)) for x in (1, 2)]
    return [
        *(plan(f"attention {_name(t)}", t, cache_moves, cache_continuations) for t in caches),
        plan("attention store", store, store_moves, store_continuations, look="append 0"),
        *(plan(f"attention {_name(t)}", t, batch_moves, batch_continuations, look="append 0") for t in batches),
        *(each for way in WAYS for each in _planned(*way, (caches[0], caches[2]), larger)),
    ]


def _planned(way: str, moves: Texts, continuations: Texts, caches: Sequence[Trace], store: Trace) -> list[Plan]:
    """Plan attends in a way: on caches, and on a store."""
    alone = [plan(f"attention {way} {_name(t)}", t, moves, continuations) for t in caches]
    return [*alone, plan(f"attention {way} store", store, moves, continuations, look="append 0")]


def _name(start: Trace) -> str:
    config = start.config
    if start.kind == "store":
        return f"batch layers={config.layers}"
    return f"ring window={config.window}" if config.window else f"growing offset<={BOUND}"


@st.composite
def scored(draw: st.DrawFn, kind: str, claimed: Collection[str] = CHAPTERS) -> Trace:
    """Draw a trace of attends, most of them with a scale or a softcap."""
    trace = draw(explored(kind, claimed))
    return Trace(trace.kind, trace.config, tuple({**op, **draw(_scores(op))} for op in trace.ops))


def _scores(op: Operation) -> st.SearchStrategy[dict[str, int]]:
    if op["op"] != "attend":
        return st.just({})
    scale, softcap = st.sampled_from((1, 16, 90, 256, 1024, 0)), st.sampled_from((1, 2, 5, 30, 50, 0, -1))
    return st.fixed_dictionaries({}, optional={"scale": scale, "softcap": softcap})


@st.composite
def sunk(draw: st.DrawFn, kind: str, claimed: Collection[str] = CHAPTERS) -> Trace:
    """Draw a trace of attends, most of them with learned sinks."""
    trace = draw(scored(kind, claimed))
    kv_heads = trace.config.kv_heads
    return Trace(trace.kind, trace.config, tuple({**op, **draw(_sinks(op, kv_heads))} for op in trace.ops))


def _sinks(op: Operation, kv_heads: int) -> st.SearchStrategy[dict[str, str]]:
    if op["op"] not in ("attend", "attendbatch", "captureattend"):
        return st.just({})
    heads = op.get("heads", kv_heads)
    each = st.lists(st.sampled_from((0, 256, -300, 77, 2000, -51200)), min_size=heads, max_size=heads)
    return st.fixed_dictionaries({}, optional={"head_sinks": each.map(listed)})


IN_TILES = "attend 2 splits=4 cuts=33 fill=random"
"""An attend of two parts, one of which has rows in several tiles."""


@st.composite
def parted(draw: st.DrawFn, kind: str, claimed: Collection[str] = CHAPTERS) -> Trace:
    """Draw a trace of attends, most of them in parts. Some cuts are in places that only long histories have. Half
    of the growing caches begin with so many random rows that a part has several tiles, in several splits."""
    trace = draw(sunk(kind, claimed))
    before = draw(st.sampled_from((0, 0, 40, 90))) if kind == "growing" else 0
    begun = notation.operations(f"append {before} fill=random; {IN_TILES}") if before else ()
    ops = (*begun, *({**op, **draw(_cuts(op))} for op in trace.ops))
    return Trace(trace.kind, trace.config, ops)


def _cuts(op: Operation) -> st.SearchStrategy[dict[str, str]]:
    if op["op"] != "attend":
        return st.just({})
    each = st.lists(st.sampled_from((0, 0, 1, op["n"], op["n"], 32, 33)), min_size=1, max_size=3)
    return st.fixed_dictionaries({}, optional={"cuts": each.map(sorted).map(listed)})


SINKS = (
    "attend 1 head_sinks=0",
    "attend 1 heads=4 head_sinks=0,0",
    "attend 0 head_sinks=0",
    "attend 1 head_sinks=empty",
)
"""Attends with too few learned sinks that any cache of two heads refuses, and one of no rows."""

FOUR = "heads=4 head_sinks=0,300,-200,51200"
"""Sinks of four heads: alike, heavier, lighter, and one that leaves next to nothing for the rows."""


CUT = ("attend 1 cuts=2,1", "attend 1 cuts=-1", "attend 2 cuts=999", "attend 0 cuts=9")
"""Attends in parts that any cache refuses, and one of no rows."""


def parted_moves(session: Session) -> list[str]:
    """Give attends in parts, some of them empty, rewinds, and attends that are refused."""
    return _attends(session, "1{} heads=4 cuts=0", "2{} splits=2 cuts=1,2 into=1", refused=CUT)


def parted_continuations(session: Session) -> list[str]:
    """Give attends in parts beside sinks, scores and masks, and where a part is hidden."""
    room = session.caches["A"].config.max_len
    if room:
        full = f"setlength 0 {room}; rollback 0"
        return [f"{full}; attend 2 layer=0 cuts=1,1 head_sinks=256,0 softcap=3; attend 1 layer=1 cuts=1"]
    one, two = held(session, 1), held(session, 2)
    scores, hidden = "[" + " ".join(str(j % 3 - 1) for j in range(one)) + "]", "0" * (two - 1) + "1"
    seen = f"{hidden}/{'1' * two}"
    return [
        f"attend 1 {FOUR} scale=64 cuts={one - 1} through {scores} & causal; attend 1 cuts=1 queries=huge",
        f"attend 2 cuts=1,{two - 1} splits=2 through {seen}; attend 1 cuts=1 through causal & window=1",
    ]


def sunk_moves(session: Session) -> list[str]:
    """Give attends with learned sinks, in one split and in two, rewinds, and attends that are refused."""
    return _attends(session, f"1{{}} {FOUR}", "2{} splits=2 head_sinks=128,-128 into=1", refused=SINKS)


def sunk_continuations(session: Session) -> list[str]:
    """Give attends with sinks, beside scores and where a query sees nothing; in a store captured, too."""
    room = session.caches["A"].config.max_len
    if room:
        full, work = f"setlength 0 {room}; rollback 0", "captureattend w 1 head_sinks=100,-100; replayattend w"
        return [f"{full}; attend 1 layer=0 head_sinks=256,0 softcap=3; rollback 0; {work}; replayattend w"]
    scores = "[" + " ".join(str(j % 3 - 1) for j in range(held(session, 1))) + "]"
    two = "0" * held(session, 2)
    return [
        f"attend 1 {FOUR} softcap=5 scale=64 through {scores} & causal; attend 1 head_sinks=0,64 queries=huge",
        f"attend 2 head_sinks=0,-300 splits=2 through {two}/{'1' * len(two)}",
    ]


WAYS: tuple[tuple[str, Texts, Texts], ...] = (
    ("scored", scored_moves, scored_continuations),
    ("sunk", sunk_moves, sunk_continuations),
    ("parted", parted_moves, parted_continuations),
)
"""Attends that take more than masks and splits: a name, the moves of a cover, and what is asked at each end."""


def _explored(prefix: str, traces: Callable[..., Any]) -> tuple[Exploration, ...]:
    """Explore attends on each kind of cache, and on a store."""
    alone = (Exploration(f"{prefix}{kind}", (kind,), partial(traces, kind)) for kind in caches_with("attend"))
    return (*alone, Exploration(f"{prefix}store", (), partial(traces, "store"), any_of=(("store",),)))


EXPLORATIONS = (
    *_explored("", explored),
    *_explored("scored/", scored),
    *_explored("sunk/", sunk),
    *_explored("parted/", parted),
)

ASKED = ("heads={heads} splits=2{fill}", "through causal & window=2", "splits=3 softcap=3", "q_dim=3", "into=1")
"""How queries of a walk ask."""

WALKS = Moves(
    {
        ("growing", "ring"): tuple(f"attend {{q}} {how}" for how in ASKED),
        ("page",): tuple(f"attend {{q}} sequence={{s}} {how}" for how in ASKED),
        ("store",): tuple(f"attend {{q}} layer={{l}} {how}" for how in ASKED),
    }
)
