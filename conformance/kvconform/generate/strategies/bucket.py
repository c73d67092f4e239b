"""BUCKET: every operation from every state of small caches; random traces on larger ones, near their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.covers import Ops, Plan
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import ops, single
from kvconform.generate.strategies.trace_builder import DrawingOnOne, geometry
from kvref.list_model.bucket import BucketModel
from kvspec.geometry import Config
from kvspec.operations.table import Operation
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


def _moves(texts: Sequence[str]) -> Callable[[Session], list[Ops]]:
    """Try these moves from every state."""

    def moves(session: Session) -> list[Ops]:
        past = session.caches["A"].past_
        return single(dict.fromkeys(text.format(less=past - 1, more=past + 1) for text in texts))

    return moves


def _after(text: str) -> Callable[[Session], Sequence[Ops]]:
    """Give steps that distinguish states by whether they are done and with which rows."""
    return lambda session: [ops(text)]


def plans() -> list[Plan]:
    """Plan a few alphabets, since one of all moves has too many states; with bounds, layers and batches."""
    return [
        _plan("prefills", "1-2", 2, 2, (*FILLED, *STILL), "decode splits=2; decode heads=4"),
        _plan("blocks", "2-3", 2, 1, (*BLOCKED, *STILL), "decode; decode"),
        _plan("crossing", "1-2-4", 1, 1, (*CROSSED, *STILL), "decode heads=4; sync"),
        _plan("encoders", "1-2", 2, 2, ENCODED, "cross 2 heads=4 splits=2; decode"),
    ]


def _plan(what: str, bounds: str, layers: int, batch: int, texts: Sequence[str], after: str) -> Plan:
    config = Config(layers=layers, batch=batch, bounds=bounds)
    name = f"bucket bounds={bounds} layers={layers} batch={batch}, {what}"
    return Plan(name, Trace("bucket", config), _moves(texts), _after(after), look=ops("bind"))


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

MISFITS: tuple[tuple[str, Any], ...] = (
    *(("layers", 4), ("values", 3), ("kv_heads", 4), ("k_dim", 17), ("v_dim", 4), ("batch", 3)),
    ("dtype", "f32"),
)
ASKED = (
    *(("heads", 0), ("q_batch", 3), ("q_dtype", "f16"), ("out_dim", 4), ("out_rows", 3), ("out_dtype", "f16")),
    ("out_readonly", 1),
    *(("q_dim", 17), ("q_rows", 3), ("q_rows", 0), ("splits", 0), ("splits", -1)),
)


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace on one cache, or on two side by side."""
    config = draw(configs())
    drawing = _Drawing(draw, Trace("bucket", config))
    for _ in range(draw(st.integers(2, LONGEST))):
        drawing.add(draw(st.sampled_from(KINDS)))
    return Trace("bucket", config, tuple(drawing.ops))


class _Drawing(DrawingOnOne):
    """Draws a trace on bucketed caches; the list model tells it the rows, and why a step would be refused."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = {"fill": "bits"} if draw(st.integers(0, 5)) == 0 else {}

    @property
    def rows(self) -> BucketModel:
        found: BucketModel = self.session.caches[self.cache]
        return found

    def _asks(self) -> dict[str, Any]:
        """Draw the queries: any number of heads, at times with splits, huge or tiny values."""
        heads = self.of(1, 1, 2, 3) * self.rows.config.kv_heads
        how = self.of({}, {}, {}, {"splits": 2}, {"splits": 7}, {"queries": "huge"}, {"queries": "zero"})
        return {"heads": heads, **how, **self.of({}, {}, {"into": 1})}

    def _decode(self) -> Operation:
        """Decode a step that is mostly allowed: after a prefill, with a refresh."""
        needed = {"refresh": 1} if self.rows.stale else {}
        often = self.of(needed, needed, needed, {"refresh": 1}, {})
        return {"op": "decode", **self._asks(), **self.fill, **often}

    def _block(self) -> Operation:
        return {"op": "block", "n": self.of(1, 2, 3, 7, 0), **self._asks(), **self.fill}

    def _prefill(self) -> Operation:
        largest = self.rows.largest
        n = self.of(self.number(0, largest), largest, max(0, largest - 1), largest + 1, 0)
        return {"op": "prefill", "n": n, **self.fill}

    def _bind(self) -> Operation:
        return {"op": "bind", **self.of({}, {"refresh": 1})}

    def _unbind(self) -> Operation:
        return {"op": "unbind"}

    def _sync(self) -> Operation:
        return {"op": "sync"}

    def _scribble(self) -> Operation:
        return {"op": "scribble"}

    def _cut(self) -> Operation:
        past = self.rows.past()
        inside = self.number(0, past)
        return {"op": "cut", "to": self.of(max(0, past - 1), inside, inside, past, 0, past + 1, -1)}

    def _encode(self) -> Operation:
        return {"op": "encode", "n": self.of(1, 3, 5, 33, 0), **self.fill}

    def _cross(self) -> Operation:
        """Attend over an encoder's rows, mostly rows that exist."""
        if self.rows.encoded is None and self.number(0, 3):
            return self._encode()
        return {"op": "cross", "n": self.of(1, 2, 3, 0), **self._asks()}

    def _misfit(self) -> Operation:
        field, value = self.draw(st.sampled_from(MISFITS))
        kind = self.of("prefill", "decode", "block", "encode")
        return {"op": kind, **({} if kind == "decode" else {"n": self.of(1, 2, 0)}), field: value}

    def _asked(self) -> Operation:
        field, value = self.draw(st.sampled_from(ASKED))
        kind = self.of("decode", "block", "cross")
        into = {"into": 1} if field.startswith("out") else {}
        return {"op": kind, **({} if kind == "decode" else {"n": self.of(1, 2)}), **into, field: value}

    def _past(self) -> Operation:
        past = self.rows.past()
        return {**self.of(self._decode, self._block)(), "past": self.of(past, past, past - 1, past + 1)}

    def _open(self) -> Operation:
        changes: tuple[dict[str, Any], ...]
        changes = ({}, {"bounds": "3"}, {"bounds": "1-2-3"}, {"batch": 3}, {"layers": 4}, {"bounds": "3-1"})
        return {"op": "open", "cache": "B", **self.draw(st.sampled_from(changes))}


def strategies() -> Iterator[Any]:
    """What explores this chapter: a strategy for each way."""
    yield explored()


EXPLORATIONS = (Exploration("bucket", (), explored),)
