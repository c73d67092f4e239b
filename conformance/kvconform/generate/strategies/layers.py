"""LAYER: every operation from every state of two or three small layers. Random traces have others, up to the heads,
widths and layers of released models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan, rewinds
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import (
    Moves,
    Numbers,
    Scale,
    beyond,
    inside,
    of_parcels,
    of_parts,
    unseen,
)
from kvspec.geometry import Config, encoded_layers
from kvspec.operations.table import listed
from kvspec.session.driver import Session
from kvspec.trace import Trace

SMALL = (
    ("full,window:3", 5),
    ("window:2,chunk:3,share:1", 5),
    ("full,sinks:1:2,chunk:2", 5),
    ("sinks:2:2,full", 5),
    ("chunk:4,chunk:2", 6),
    ("window:4,share:0,window:2", 5),
    ("full,state", 4),
    ("conv:3,state,window:3", 5),
    ("window:2,cross,full,cross", 2),
)
"""Layers, and the offset up to which they are covered."""

MISFITS = ("kv_heads=3", "k_dim=7", "v_dim=5", "dtype=f32", "batch=2", "layers=1", "layers=7", "values=0")
"""Rows of another geometry, or of other layers."""

LONGEST = 20
"""Most operations of a trace."""

WIDE = ((1, 576, 512), (4, 128, 128), (8, 64, 64), (64, 64, 72), (16, 96, 80))
"""Heads and widths of released models."""

DEEP = (
    "full,window:4",
    "window:3,window:3,full",
    "chunk:8,chunk:8,full",
    "conv:4,state,full",
    "full,window:5,share:0,share:1",
    "full,cross",
)
"""Layers as released models repeat them: as Gemma, Llama 4, Qwen3-Next, models that share, and Whisper."""


ROWLESS = ("share", "state", "conv", "cross")
"""Layers without rows that others may show."""


def count(of: str) -> int:
    """Count the layers that appends give rows."""
    return sum(not layer.startswith(("share", "cross")) for layer in of.split(","))


def proper(of: str) -> bool:
    """Tell whether a layer gets rows, and each that shares has an owner."""
    views = of.split(",")
    shared = [views[int(view.partition(":")[2])] for view in views if view.startswith("share")]
    return count(of) > 0 and not any(view.startswith(ROWLESS) for view in shared)


def opening(of: str) -> Config:
    """Give the config of these layers."""
    return Config(of=of, layers=count(of))


def moves(bound: int, session: Session) -> list[str]:
    """Give the appends up to a bound, every rewind, and what changes nothing."""
    offset = session.caches["A"].offset
    appends = [f"append {n}" for n in range(bound - offset + 1)]
    asks = [f"ask {to}" for to in range(-1, offset + 2)]
    return [
        *appends,
        *(_encodes(session) if session.caches["A"].crossing else []),
        *rewinds(offset, near=False),
        *asks,
        *(f"append 1 {each}" for each in MISFITS),
        "free",
        "scribble",
    ]


def _encodes(session: Session) -> list[str]:
    """Give encodes of some rows, also while there are others, of none, and of rows that do not fit."""
    wrong = ("layers=1", "layers=3", "kv_heads=3", "dtype=f32", "values=0")
    return ["encode 1", "encode 3", "encode 0", *(f"encode 2 {each}" for each in wrong)]


BRANCHED = (("full,window:2", 2), ("sinks:1:1,chunk:2,share:1", 2), ("conv:2,state,cross,full", 1))
"""Layers, and the offset up to which drafts on them are covered."""

MOST_DRAFTS = 2
"""Drafts of a covered state; further ones behave as the second does."""


def branch_moves(bound: int, session: Session) -> list[str]:
    """Give appends, drafts on each draft and on none, and every settle; and what drops drafts or is refused."""
    cache = session.caches["A"]
    k, offset = len(cache.drafts), cache.offset
    own = [*(f"append {n}" for n in (1, 2) if n <= bound - offset), "rewind 0", f"rewind {offset}"]
    encodes = ["encode 1"] if cache.crossing and not cache.encoded else []
    more = [f"branch 1 on={other}" for other in range(-1, k)] if k < MOST_DRAFTS else []
    keeps = [f"settle {draft}" for draft in range(-1, k) if offset + _kept(cache, draft) <= bound]
    wrong = f"branch 1 on={k}; branch 1 on=-2; branch 2 on=-1; branch 1 values=0; branch 0; settle {k}; settle -2"
    saved = f"snapshot s; branch 2 on=-1,-1; settle {k}; restore s {offset}" if offset else "free"
    return [*own, *encodes, *more, *keeps, wrong, *[f"append 0; {saved}"] * (k == MOST_DRAFTS)]


def _kept(cache: Any, draft: int) -> int:
    """Count the drafts that a settle appends."""
    return len(cache.drafts.tree.way(draft)) if draft >= 0 else 0


def branch_continuations(session: Session) -> list[str]:
    """Show the way to each draft by one that hangs on it, keep one or drop all, and append to show the cache."""
    k = len(session.caches["A"].drafts)
    each = "".join(f"branch 1 on={draft}; " for draft in range(-1, k))
    return [f"{each}branch 2; settle {2 * k + 2}; append 1; append 2", "append 1; append 1"]


def continuations(session: Session) -> list[str]:
    """Give appends that show which rows each layer has: one row and another, and several at once."""
    return ["append 1; append 1", "append 3"]


def plans() -> list[Plan]:
    """Plan each of the small caches, and drafts on some."""
    return [*(_plan(of, bound) for of, bound in SMALL), *(_branched(of, bound) for of, bound in BRANCHED)]


def _branched(of: str, bound: int) -> Plan:
    name = f"layers branches of={of} offset<={bound}"
    return plan(
        name, Trace("layers", opening(of)), partial(branch_moves, bound), branch_continuations, look="scribble"
    )


def _plan(of: str, bound: int) -> Plan:
    name = f"layers of={of} offset<={bound}"
    return plan(name, Trace("layers", opening(of)), partial(moves, bound), continuations, look="scribble")


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw a few layers of any view, the sizes mostly small, and any geometry."""
    layers: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        layers.append(_layer(draw, layers))
    of = ",".join(layers)
    return geometry(draw).changed(of=of, layers=count(of))


@st.composite
def crossing_configs(draw: st.DrawFn) -> Config:
    """Draw the same with a layer behind them that sees the rows of an encoder."""
    config = draw(configs())
    return config.changed(of=f"{config.of},cross")


def _layer(draw: st.DrawFn, before: Sequence[str]) -> str:
    """Draw one layer. It shares only with one that has rows."""
    owners = [number for number, layer in enumerate(before) if not layer.startswith(ROWLESS)]
    kinds = "full", "window", "chunk", "sinks", "window", "chunk", "state", "conv", *["share"] * bool(owners)
    kind = draw(st.sampled_from((*kinds, *["cross"] * bool(before))))
    size = mostly(draw, st.integers(1, 5), st.integers(6, 12))
    match kind:
        case "full" | "state" | "cross":
            return kind
        case "sinks":
            return f"sinks:{draw(st.integers(1, 3))}:{size}"
        case "share":
            return f"share:{draw(st.sampled_from(owners))}"
    return f"{kind}:{size}"


@st.composite
def deep(draw: st.DrawFn) -> Config:
    """Draw the heads and widths of a released model, or as many layers as one has."""
    if draw(st.booleans()):
        heads, k_dim, v_dim = draw(st.sampled_from(WIDE))
        of = draw(st.sampled_from(DEEP))
        return Config(of=of, layers=count(of), kv_heads=heads, k_dim=k_dim, v_dim=v_dim)
    few, n = draw(st.sampled_from(DEEP[:4])).split(","), draw(st.sampled_from((17, 33, 61)))
    of = ",".join((few * n)[:n])
    return Config(of=of, layers=n, kv_heads=draw(st.sampled_from((1, 4))), k_dim=24, v_dim=20)


KINDS = (*("append",) * 6, *("rewind", "ask") * 2, "near", "misfit", "bits", "free", "scribble", "outside")
"""Kinds of operations. A kind listed more often is drawn more often."""

DRAFTED = (*KINDS, *("branch", "settle") * 2)
"""The same, with drafts."""


def kinds(config: Config, kinds: Sequence[str] = KINDS) -> Sequence[str]:
    """Give these, and encodes where layers see the rows of an encoder."""
    return (*kinds, *("encode", "encode") * bool(encoded_layers(config)))


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace on any layers."""
    config = draw(configs())
    return Drawn(draw, Trace("layers", config)).until(draw(st.integers(2, LONGEST)), kinds(config))


@st.composite
def explored_deep(draw: st.DrawFn) -> Trace:
    """Draw a trace on the layers of a released model."""
    config = draw(deep())
    return Drawn(draw, Trace("layers", config)).until(draw(st.integers(2, 8)), kinds(config, DRAFTED))


class Drawn(Drawing):
    """Draws a trace. The list model tells it the offset, and what each layer has."""

    def _append(self) -> str:
        """Append a few rows, none now and then."""
        return f"append {self.of(1, 1, 2, 3, self.number(0, 6))}"

    def _bits(self) -> str:
        """Append rows of arbitrary bits. Where a layer folds them, append legible rows: a NaN would hide all that
        comes after."""
        fill = "" if self.model.states() else " fill=bits"
        return f"append {self.number(1, 3)}{fill}"

    def _encode(self) -> str:
        """Hand in the rows of an encoder, also a second time, or some that do not fit."""
        wrong = f" {self.of('layers=7', 'kv_heads=3', 'values=0')}" if self.of(*range(5)) == 0 else ""
        return f"encode {self.of(1, 2, 3, self.number(0, 6))} fill=legible{wrong}"

    def _branch(self) -> str:
        """Hand in drafts that hang on any, seldom on what is not there, or in no number that fits."""
        n, there = self.of(1, 2, 3, 4, 6), len(self.model.drafts)
        on = [self.of(self.number(-1, there + i - 1), there + i - 1, -1) for i in range(n)]
        on[-1] = self.of(*[on[-1]] * 12, there + n, -2)
        wrong = f" {self.of('layers=7', 'kv_heads=3', 'values=0')}" if self.of(*range(12)) == 0 else ""
        return f"branch {n} on={listed(on)}{wrong}"

    def _more(self) -> str:
        """Hand in drafts that hang each on the one before it."""
        return f"branch {self.of(1, 1, 2, 3, 0)}"

    def _settle(self) -> str:
        """Settle for the newest draft or any other, none, or one that is not there."""
        there = len(self.model.drafts)
        return f"settle {self.of(there - 1, *[self.number(-1, max(0, there - 1))] * 3, -1, there)}"

    def _rewind(self) -> str:
        """Rewind by little, or to anywhere."""
        return f"rewind {self._target()}"

    def _ask(self) -> str:
        """Ask for the same."""
        return f"ask {self._target()}"

    def _target(self) -> int:
        offset = int(self.model.offset)
        return self.of(max(0, offset - 1), max(0, offset - 2), self.number(0, offset), 0, offset)

    def _near(self) -> list[str]:
        """Rewind to a boundary of a layer: the first target that it can go to, and the one before."""
        lacks = [max(set(range(self.model.offset)) - has, default=-1) for has in self.model.has]
        to = self.of(*lacks)
        return [f"ask {to}", f"rewind {max(0, self.of(to, to + 1, to + 2))}"]

    def _snapshot(self) -> str:
        """Save all layers, under one of two names."""
        return f"snapshot {self.of('s', 't')}"

    def _restore(self) -> list[str]:
        """Put back what was saved, here or elsewhere: at its stop, at a boundary of a layer, anywhere."""
        names = [name for name, saved in self.session.snapshots.items() if saved is not None]
        if not names:
            return []
        name = self.of(*names)
        saved = self.session.snapshots[name]
        lacks = [max(set(range(saved.stop)) - has, default=-1) + 1 for has in saved.has]
        to = self.of(saved.stop, saved.stop, *lacks, self.number(0, saved.stop), self.number(-1, saved.stop + 1))
        other = [f"open B; B: append {self.number(0, 3)}; B: restore {name} {to}; B: append 2"]
        return self.of([f"restore {name} {to}"], [f"restore {name} {to}"], other)

    def _misfit(self) -> str:
        """Append rows that do not fit."""
        return f"append {self.number(0, 2)} {self.of(*MISFITS)}"

    def _outside(self) -> str:
        """Rewind to where no token is."""
        return f"rewind {self.of(-1, self.model.offset + 1, 1 << 31, -(1 << 31))}"


SAVING = (*KINDS, *("snapshot", "restore") * 2, "branch", "settle")
"""Kinds of operations where snapshots are taken, also of caches that have drafts."""


@st.composite
def explored_saved(draw: st.DrawFn) -> Trace:
    """Draw a trace on any layers, with snapshots of them."""
    config = draw(configs())
    return Drawn(draw, Trace("layers", config)).until(draw(st.integers(3, LONGEST)), kinds(config, SAVING))


DRAWN_BRANCHED = (*("append",) * 3, *("branch",) * 6, *("more", "settle") * 3, *KINDS[6:])
"""Kinds of operations where drafts are."""


@st.composite
def explored_branches(draw: st.DrawFn) -> Trace:
    """Draw a trace on any layers, with drafts of several ways on."""
    config = draw(configs())
    return Drawn(draw, Trace("layers", config)).until(draw(st.integers(3, LONGEST)), kinds(config, DRAWN_BRANCHED))


EXPLORATIONS = (
    Exploration("layers", (), explored),
    Exploration("deep", (), explored_deep),
    Exploration("branches", (), explored_branches),
)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw rows, and targets inside and beyond."""
    cache, saved = session.caches["A"], session.snapshots.get("s")
    found: Numbers = {
        "n": random.choice((1, 2, 3, 5)),
        "to": inside(cache.offset, random),
        "beyond": beyond(cache.offset, random),
        "length": cache.offset,
    }
    if cache.crossing:
        found |= {"encoded": random.choice((1, 2, 5)), "none": 0}
    if saved is not None:
        found |= {"stop": saved.stop, "within": inside(saved.stop, random), "later": saved.stop + 1}
    return found | of_parcels(session) | of_parts(session, random)


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    """Repeat layers of several views up to the scale's number of layers. Two that hold as much are neighbours. Each
    second walk has layers that see the rows of an encoder too: not every engine claims them."""
    size = scale.size(turn)
    cross = ",cross" * (turn % 2)
    few = [f"window:{size}{cross}", "full", "full", f"chunk:{max(2, size - 1)}", f"sinks:2:{size}"]
    n = max(len(few), scale.layers)
    return scale.fields(f"of={','.join((few * n)[:n])} layers={n}"), unseen(scale)


WALKS = Moves(
    {
        ("layers",): (
            "append {n}{fill}",
            "append 1{fill}",
            "append 1",
            "append {n} v_dim=3",
            "append 1 layers=1",
            "append 0",
            "open B; B: append {n}",
            "branch 3 on=-1,-1,1{fill}; branch {n}; settle 2",
            "branch 2 on=-1,-1; branch 1 on=7; branch 2; settle 3",
            "branch 2; append 1; settle 0",
            "encode {encoded}",
            "encode {encoded} v_dim=3",
            "encode {none}",
            "rewind {to}",
            "rewind {beyond}",
            "ask {to}",
            "free",
            "scribble",
        ),
    },
    _numbers,
    _sized,
)
