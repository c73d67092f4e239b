"""STORE: every operation from every state of small stores, and random traces on larger ones of unequal lengths."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import FAR, geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import DrawingOnCaches
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale, beyond, inside, unseen
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

SIZES = ((1, 3), (2, 1))
"""Layers and rows of the covered stores."""

MISFITS = ("kv_heads=3", "k_dim=9", "v_dim=7", "dtype=f32", "values=1", "batch=2")
"""Rows of another geometry."""

LONGEST = 24
"""Most operations of a trace."""


def moves(session: Session) -> list[str]:
    """Give moves that change rows or lengths, and moves that are refused or return to their state."""
    store = session.caches["A"]
    layers, room = len(store.lengths_), store.max_len
    appends = [f"append {n}" for n in range(1, room + 2)] + [f"append 1 layer={x}" for x in range(layers)]
    lengths = [f"setlength {x} {n}" for x in range(layers) for n in range(room + 1)]
    back = [f"rollback {to}" for to in range(room + 1)]
    return [*appends, *lengths, *back, "reset", "zero", *_loads(layers, room), *_still(layers, room)]


def _loads(layers: int, room: int) -> list[str]:
    """Give moves that save, change and load again, also through another geometry."""
    between = ["", "reset; append 1; ", f"zero; append 1 layer={layers - 1}; "]
    longer = f"save s; init max_len={room + 1}; append {room + 1}; load s; init max_len={room}; load s"
    return [*(f"save s; {x}load s" for x in between), longer]


def _still(layers: int, room: int) -> list[str]:
    """Give moves that leave the store unchanged: questions, refusals and empty work."""
    refused = [f"append 1 layer={x}" for x in (-1, layers)]
    misfits = [f"append 2 layer={layers - 1} {misfit}" for misfit in MISFITS]
    lengths = [f"setlength {x} 0" for x in (-1, layers, *FAR)] + [f"setlength 0 {n}" for n in (-1, room + 1, *FAR)]
    back = ["rollback -1", f"rollback {-FAR[0]}", f"rollback {FAR[0]}", f"rollback {room + 1}"]
    changed = f"layers={layers + 1}", "kv_heads=1", "k_dim=7", "v_dim=7", "dtype=f32", f"values={room + 1}"
    loads = "; load s ".join(["save s", "layers=0", *changed])
    inits = ["init", "init layers=0", "init max_len=-1", "init kv_heads=0", "init k_dim=0"]
    sums = [f"fingerprint {p}" for p in (-1, *range(room + 1), FAR[0])]
    nothing = ["append 0", f"append 0 layer={layers}", "append 0 kv_heads=5", "scribble"]
    beside = f"open B max_len={room - 1}"
    return [*refused, *misfits, *lengths, *back, loads, *inits, *sums, *nothing, beside]


def continuations(session: Session) -> list[str]:
    """Show every row, live or not, before and after one more append to each layer."""
    store = session.caches["A"]
    layers = range(len(store.lengths_))
    one = "; ".join(f"append 1 layer={x}" for x in layers)
    shown = "; ".join(f"setlength {x} {store.max_len}" for x in layers)
    return [shown, f"{one}; {shown}; fingerprint 0"]


def plans() -> list[Plan]:
    """Plan one for each size."""
    return [_plan(layers, room) for layers, room in SIZES]


def _plan(layers: int, room: int) -> Plan:
    start = Trace("store", Config(layers=layers, max_len=room))
    return plan(f"store layers={layers} max_len={room}", start, moves, continuations, look="append 0")


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any geometry, mostly with small layers, so that they fill often."""
    small = st.integers(1, 6)
    return geometry(draw, heads=4).changed(
        layers=draw(st.integers(1, 5)),
        max_len=mostly(draw, small, st.integers(7, 40)),
    )


KINDS = (
    *("append",) * 5,
    *("one_layer",) * 4,
    *("setlength", "rollback", "save", "load") * 2,
    *("reset", "zero", "init", "fingerprint", "scribble", "misfit", "open", "revealed", "revealed"),
)


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace on one store, or on two that load each other's saves."""
    drawing = _Drawing(draw, Trace("store", draw(configs())))
    return drawing.times(draw(st.integers(2, LONGEST)), KINDS)


class _Drawing(DrawingOnCaches):
    """Draws a trace on stores. The list model tells it where each layer ends."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = " fill=bits" if draw(st.integers(0, 4)) == 0 else ""

    @property
    def lengths(self) -> list[int]:
        """Give the rows of each layer."""
        return [layer.length for layer in self.model.layers]

    def _layer(self) -> int:
        return self.number(0, len(self.lengths) - 1)

    def _rows(self, length: int) -> int:
        """Draw how many rows to append: mostly few, or until the layer is full, or one too many."""
        room: int = max(0, self.model.room - length)
        return self.of(1, 1, 1, 2, 3, room, room, max(0, room - 1), room + 1, 0)

    def _append(self) -> str:
        return f"append {self._rows(max(self.lengths))}{self.fill}"

    def _one_layer(self) -> str:
        layer = self._layer()
        return f"append {self._rows(self.lengths[layer])} layer={layer}{self.fill}"

    def _misfit(self) -> str:
        dtype = "f32" if self.model.config.dtype != "f32" else "f16"
        rows = ("kv_heads=5", "k_dim=17", "v_dim=4", "values=3", f"dtype={dtype}", "batch=2")
        layers = len(self.model.layers)
        misfit = self.of(*rows, "layer=-1", "layer=5", *[f"layers={self.of(1, layers + 1)}"] * 3)
        return f"append {self.of(1, 2, 0)} {misfit}"

    def _setlength(self) -> str:
        layer, room = self._layer(), self.model.room
        n = self.of(self.number(0, room), room, 0, room + 1, -1, FAR[0])
        return f"setlength {self.of(layer, layer, layer, -1, len(self.lengths))} {n}"

    def _rollback(self) -> str:
        longest, inside = max(self.lengths), self.number(0, max(self.lengths))
        return f"rollback {self.of(inside, inside, min(self.lengths), longest - 1, 0, -1, FAR[0])}"

    def _revealed(self) -> str:
        """Set a layer's length to show all rows, live or not, and set it back."""
        layer = self._layer()
        return f"setlength {layer} {self.model.room}; setlength {layer} {self.lengths[layer]}"

    def _fingerprint(self) -> str:
        room = self.model.room
        return f"fingerprint {self.of(self.number(0, room - 1), room - 1, room, -1)}"

    def _save(self) -> str:
        return f"save {self.of('s', 't')}"

    def _load(self) -> str:
        names = sorted(self.session.names["saved store"])
        if not names:
            return self._save()
        changes = *[""] * 8, "layers=1", "layers=6", "kv_heads=5", "v_dim=17", "dtype=bf16"
        return f"load {self.of(*names)} {self.of(*changes)}"

    def _init(self) -> str:
        room = self.model.room
        sizes = f"max_len={room + 1}", f"max_len={max(1, room - 1)}", "layers=3", "kv_heads=2", "k_dim=6", "v_dim=6"
        return f"init {self.of('', '', *sizes, 'dtype=f32', 'layers=0', 'k_dim=-1')}"

    def _open(self) -> str:
        return f"open B {self.of('', 'max_len=9', 'max_len=2', 'layers=2', 'dtype=f32')}"


EXPLORATIONS = (Exploration("store", (), explored),)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw a layer, and places inside and beyond what it and a sequence of the batch hold."""
    store = session.caches["A"]
    layer = random.choice((0, len(store.layers) - 1, random.randrange(len(store.layers))))
    held = [each.length for each in store.layers]
    found: Numbers = {"l": layer, "to": inside(max(held), random), "here": inside(held[layer], random)}
    found |= {
        "has": max(held) + store.room * bool(store.batched),
        "gone": 0,
        "length": max(held),
        "least": inside(min(held), random),
        "over": store.room + 1,
    }
    found |= {"nolayer": len(store.layers), "beyond": beyond(max(held), random)}
    found |= {"t": "t"} if "t" in session.names["saved store"] else {}
    found |= {"w": "w"} if "w" in session.names["captured work"] else {}
    found |= {"g": "g"} if "g" in session.names["captured attention"] else {}
    if store.batched and store.batched.all:
        s = random.choice((0, len(store.batched.all) - 1, random.randrange(len(store.batched.all))))
        found |= {"s": s, "back": inside(store.batched.all[s].length, random)}
        found |= {"far": beyond(store.batched.all[s].length, random), "gone": len(store.batched.all)}
        found |= {"fewer": -(-2 * len(store.batched.all) // 3)}
    return found


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    """Give a store at a scale; `m` sequences of a batch are the scale's."""
    own = f"layers={scale.layers} max_len={max(scale.room, scale.size(turn))}"
    rows = "append 2" if not scale.length else unseen(scale)
    scattered = f"batch {scale.batch}; scatter 0 1; scatter {scale.batch - 1} 2"
    return scale.fields(own), rows, scattered


WALKS = Moves(
    {
        ("store",): (
            "append {n}{fill}",
            "append 1{fill}",
            "append {n} layer={l}{fill}",
            "append {n} v_dim=3",
            "append 1 layer={nolayer}",
            "rollback {to}",
            "rollback -1",
            "setlength {l} {here}",
            "setlength {l} {over}",
            "save t",
            "load {t}",
            "load {t} v_dim=3",
            "reset",
            "zero",
            "init",
            "fingerprint 0",
            "scribble",
        )
    },
    _numbers,
    _sized,
)
