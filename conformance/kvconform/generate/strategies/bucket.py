"""BUCKET: every operation from every state of small caches, and random traces on larger ones, near their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import DrawingOnCaches
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale, beyond, inside
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

LONGEST = 24
"""Most operations of a trace."""

FILLED = ("prefill 1", "prefill 3", "decode", "decode refresh=1", "cut {less}", "sync", "unbind")
BLOCKED = ("decode", "block 1", "block 2", "unbind", "bind", "cut 0", "prefill 2", "bind refresh=1")
CROSSED = ("decode", "prefill 3", "decode refresh=1", "unbind", "bind", "cut 1")
ENCODED = (
    *("encode 0", "encode 1", "encode 3", "cross 0", "cross 1", "cross 3", "decode", "unbind", "bind"),
    *("encode 2 values=1", "cross 2 heads=3", "cross 1 q_dim=5", "scribble"),
)
STILL = (
    *("decode past={less}", "block 1 past={more}", "block 0", "scribble", "decode v_dim=7", "block 2 values=1"),
    *("decode heads=3", "block 2 q_rows=1", "cut {more}", "cut -1"),
)
"""Moves; `{less}` is one row fewer than exist, `{more}` one more. Moves of `STILL` are refused or do nothing."""


def moves(texts: Sequence[str], session: Session) -> dict[str, None]:
    """Try each of these moves once."""
    past = session.caches["A"].past_
    return dict.fromkeys(text.format(less=past - 1, more=past + 1) for text in texts)


def plans() -> list[Plan]:
    """Plan a few alphabets, since one of all moves has too many states; with bounds, layers and batches."""
    return [
        _plan("prefills", "1-2", 2, 2, (*FILLED, *STILL), "decode splits=2; decode heads=4"),
        _plan("blocks", "2-3", 2, 1, (*BLOCKED, *STILL), "decode; decode"),
        _plan("crossing", "1-2-4", 1, 1, (*CROSSED, *STILL), "decode heads=4; sync"),
        _plan("encoders", "1-2", 2, 2, ENCODED, "cross 2 heads=4 splits=2; decode"),
    ]


def _plan(what: str, bounds: str, layers: int, batch: int, texts: Sequence[str], after: str) -> Plan:
    """Plan one. The steps `after` distinguish states by whether they are done, and with which rows."""
    start = Trace("bucket", Config(layers=layers, batch=batch, bounds=bounds))
    name = f"bucket bounds={bounds} layers={layers} batch={batch}, {what}"
    return plan(name, start, partial(moves, texts), lambda _: [after], look="bind")


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any geometry, with bounds close to each other, so that traces cross them often."""
    bounds = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True))
    return geometry(draw, heads=2, widest=9).changed(
        layers=draw(st.integers(1, 3)),
        batch=draw(st.sampled_from((1, 1, 2))),
        bounds="-".join(map(str, sorted(bounds))),
    )


KINDS = (
    *("decode",) * 8,
    *("prefill", "block", "block", "bind", "unbind", "unbind", "sync", "cut", "cut"),
    *("encode", "cross", "cross", "misfit", "asked", "past", "scribble", "open"),
)

MISFITS = ("layers=4", "values=3", "kv_heads=4", "k_dim=17", "v_dim=4", "batch=3", "dtype=f32")
ASKED = (
    *("heads=0", "q_batch=3", "q_dtype=f16", "out_dim=4", "out_rows=3", "out_dtype=f16", "out_readonly=1"),
    *("q_dim=17", "q_rows=3", "q_rows=0", "splits=0", "splits=-1"),
)


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace on one cache, or on two side by side."""
    drawing = _Drawing(draw, Trace("bucket", draw(configs())))
    return drawing.times(draw(st.integers(2, LONGEST)), KINDS)


class _Drawing(DrawingOnCaches):
    """Draws a trace on bucketed caches. The list model tells it the rows, and why a step would be refused."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = " fill=bits" if draw(st.integers(0, 5)) == 0 else ""

    def _queries(self) -> str:
        """Draw the queries: any number of heads, at times with splits, huge or tiny values."""
        heads = self.of(1, 1, 2, 3) * self.model.config.kv_heads
        how = self.of("", "", "", " splits=2", " splits=7", " queries=huge", " queries=zero")
        return f"heads={heads}{how}{self.of('', '', ' into=1')}"

    def _decode(self) -> str:
        """Decode a step that is mostly allowed: after a prefill, with a refresh."""
        needed = " refresh=1" * self.model.stale
        refresh = self.of(needed, needed, needed, " refresh=1", "")
        return f"decode {self._queries()}{self.fill}{refresh}"

    def _block(self) -> str:
        return f"block {self.of(1, 2, 3, 7, 0)} {self._queries()}{self.fill}"

    def _prefill(self) -> str:
        largest = self.model.largest
        n = self.of(self.number(0, largest), largest, max(0, largest - 1), largest + 1, 0)
        return f"prefill {n}{self.fill}"

    def _bind(self) -> str:
        return f"bind{self.of('', ' refresh=1')}"

    def _cut(self) -> str:
        past = self.model.past()
        inside = self.number(0, past)
        return f"cut {self.of(max(0, past - 1), inside, inside, past, 0, past + 1, -1)}"

    def _encode(self) -> str:
        return f"encode {self.of(1, 3, 5, 33, 0)}{self.fill}"

    def _cross(self) -> str:
        """Attend over an encoder's rows, mostly rows that exist."""
        if self.model.encoded is None and self.number(0, 3):
            return self._encode()
        return f"cross {self.of(1, 2, 3, 0)} {self._queries()}"

    def _misfit(self) -> str:
        misfit, kind = self.of(*MISFITS), self.of("prefill", "decode", "block", "encode")
        return f"{kind} {'' if kind == 'decode' else self.of(1, 2, 0)} {misfit}"

    def _asked(self) -> str:
        misfit, kind = self.of(*ASKED), self.of("decode", "block", "cross")
        into = "into=1" if misfit.startswith("out") else ""
        return f"{kind} {'' if kind == 'decode' else self.of(1, 2)} {into} {misfit}"

    def _past(self) -> str:
        past = self.model.past()
        return f"{self.of(self._decode, self._block)()} past={self.of(past, past, past - 1, past + 1)}"

    def _open(self) -> str:
        changes = "", "bounds=3", "bounds=1-2-3", "batch=3", "layers=4", "bounds=3-1"
        return f"open B {self.of(*changes)}"


EXPLORATIONS = (Exploration("bucket", (), explored),)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw places inside and beyond what the buckets hold."""
    bucket = session.caches["A"]
    past = int(bucket.past())
    found: Numbers = {"to": inside(past, random), "beyond": beyond(past, random), "over": bucket.largest + 1}
    return found | {"length": past, "refresh": " refresh=1" if bucket.stale else ""}


MOST_HEADS, MOST_ROWS = 40, 1100
"""Heads of all layers, and rows, of a bucket in a walk: each operation has queries for all of them."""


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    last = max(min(scale.length, MOST_ROWS) + max(scale.rows) + 4, scale.size(turn) + 2)
    bounds = f"{min(4, scale.size(turn))}-{scale.size(turn) + 1}-{last}"
    layers = scale.layers if scale.layers < 10 else 2
    heads = scale.kv_heads if layers < 3 else min(scale.kv_heads, MOST_HEADS // layers)
    batch = 2 if layers > 2 else scale.batch
    begin = f"run 1 {{prefill {min(scale.length, MOST_ROWS)}; sync}}" if scale.length else ""
    return scale.fields(f"kv_heads={heads} batch={batch} layers={layers} bounds={bounds}"), begin


WALKS = Moves(
    {
        ("bucket",): (
            "prefill {n}{fill}",
            "prefill {over}",
            "prefill 1 v_dim=3",
            "decode heads={heads}{refresh}{fill}",
            "decode{refresh}",
            "decode past=99",
            "decode v_dim=3",
            "block {q} heads={heads}{fill}; unbind",
            "block {few}",
            "bind{refresh}",
            "bind refresh=1",
            "unbind",
            "sync",
            "cut {to}",
            "cut {beyond}",
            "encode {n}{fill}",
            "cross {few} heads={heads} splits=2",
            "cross {q}",
            "scribble",
        ),
    },
    _numbers,
    _sized,
)
