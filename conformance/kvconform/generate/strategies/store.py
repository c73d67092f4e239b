"""STORE: every operation from every state of small stores; random traces on larger ones of unequal lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.covers import Ops, Plan
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import ops, single
from kvconform.generate.strategies.trace_builder import FAR, DrawingOnOne, geometry, mostly
from kvref.list_model.store import StoreModel
from kvspec.geometry import Config
from kvspec.operations.table import Operation
from kvspec.session.driver import Session
from kvspec.trace import Trace

SIZES = ((1, 3), (2, 1))
"""Layers and rows of the covered stores."""

LONGEST = 24
"""Most operations of a trace."""


def moves(session: Session) -> list[Ops]:
    """Give moves that change rows or lengths, and moves that are refused or return to their state."""
    store = session.caches["A"]
    layers, room = len(store.lengths_), store.max_len
    appends = [f"append {n}" for n in range(1, room + 2)] + [f"append 1 layer={x}" for x in range(layers)]
    lengths = [f"setlength {x} {n}" for x in range(layers) for n in range(room + 1)]
    back = [f"rollback {to}" for to in range(room + 1)]
    return single([*appends, *lengths, *back, "reset", "zero", *_loads(layers, room), *_still(layers, room)])


def _loads(layers: int, room: int) -> list[str]:
    """Give moves that save, change and load again, also through another geometry."""
    between = ["", "reset; append 1; ", f"zero; append 1 layer={layers - 1}; "]
    longer = f"save s; init max_len={room + 1}; append {room + 1}; load s; init max_len={room}; load s"
    return [*(f"save s; {x}load s" for x in between), longer]


def _still(layers: int, room: int) -> list[str]:
    """Give moves that leave the store unchanged: questions, refusals and empty work."""
    refused = [f"append 1 layer={x}" for x in (-1, layers)] + [
        f"append 2 layer={layers - 1} {m}" for m in _misfits()
    ]
    lengths = [f"setlength {x} 0" for x in (-1, layers, *FAR)] + [f"setlength 0 {n}" for n in (-1, room + 1, *FAR)]
    back = ["rollback -1", f"rollback {-FAR[0]}", f"rollback {FAR[0]}", f"rollback {room + 1}"]
    changed = (
        "layers=0",
        f"layers={layers + 1}",
        "kv_heads=1",
        "k_dim=7",
        "v_dim=7",
        "dtype=f32",
        f"values={room + 1}",
    )
    loads = ["; ".join(["save s", *(f"load s {c}" for c in changed)])]
    inits = ["init", "init layers=0", "init max_len=-1", "init kv_heads=0", "init k_dim=0"]
    sums = [f"fingerprint {p}" for p in (-1, *range(room + 1), FAR[0])]
    nothing = [
        "append 0",
        f"append 0 layer={layers}",
        "append 0 kv_heads=5",
        "scribble",
        f"open B max_len={room - 1}",
    ]
    return [*refused, *lengths, *back, *loads, *inits, *sums, *nothing]


def _misfits() -> list[str]:
    return ["kv_heads=3", "k_dim=9", "v_dim=7", "dtype=f32", "values=1", "batch=2"]


def continuations(session: Session) -> Sequence[Ops]:
    """Show every row, live or not, before and after one more append to each layer."""
    store = session.caches["A"]
    layers = range(len(store.lengths_))
    one, all_ = [f"append 1 layer={x}" for x in layers], [f"setlength {x} {store.max_len}" for x in layers]
    return [ops("; ".join(all_)), ops("; ".join([*one, *all_, "fingerprint 0"]))]


def plans() -> list[Plan]:
    """Plan one for each size."""
    return [_plan(Config(layers=layers, max_len=room)) for layers, room in SIZES]


def _plan(config: Config) -> Plan:
    name = f"store layers={config.layers} max_len={config.max_len}"
    return Plan(name, Trace("store", config), moves, continuations, look=ops("append 0"))


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
    config = draw(configs())
    drawing = _Drawing(draw, Trace("store", config))
    for _ in range(draw(st.integers(2, LONGEST))):
        drawing.add(draw(st.sampled_from(KINDS)))
    return Trace("store", config, tuple(drawing.ops))


class _Drawing(DrawingOnOne):
    """Draws a trace on stores; the list model tells it where each layer ends."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = {"fill": "bits"} if draw(st.integers(0, 4)) == 0 else {}

    @property
    def store(self) -> StoreModel:
        found: StoreModel = self.session.caches[self.cache]
        return found

    def _layer(self) -> int:
        return self.draw(st.integers(0, len(self.store.layers) - 1))

    def _rows(self, length: int) -> int:
        """Draw how many rows to append: mostly few, or until the layer is full, or one too many."""
        room = max(0, self.store.room - length)
        return int(self.of(1, 1, 1, 2, 3, room, room, max(0, room - 1), room + 1, 0))

    def _append(self) -> Operation:
        longest = max(layer.length for layer in self.store.layers)
        return {"op": "append", "n": self._rows(longest), **self.fill}

    def _one_layer(self) -> Operation:
        layer = self._layer()
        return {"op": "append", "n": self._rows(self.store.layers[layer].length), "layer": layer, **self.fill}

    def _misfit(self) -> Operation:
        fields = (
            ("kv_heads", 5),
            ("k_dim", 17),
            ("v_dim", 4),
            ("values", 3),
            ("dtype", "f32" if self.store.config.dtype != "f32" else "f16"),
            ("batch", 2),
            ("layer", -1),
            ("layer", 5),
        )
        field, value = self.draw(st.sampled_from(fields))
        return {"op": "append", "n": self.of(1, 2, 0), field: value}

    def _setlength(self) -> Operation:
        layer, room = self._layer(), self.store.room
        n = self.of(self.draw(st.integers(0, room)), room, 0, room + 1, -1, FAR[0])
        return {"op": "setlength", "layer": self.of(layer, layer, layer, -1, len(self.store.layers)), "n": n}

    def _rollback(self) -> Operation:
        lengths = [layer.length for layer in self.store.layers]
        inside = self.draw(st.integers(0, max(lengths)))
        return {"op": "rollback", "to": self.of(inside, inside, min(lengths), max(lengths) - 1, 0, -1, FAR[0])}

    def _revealed(self) -> list[Operation]:
        """Set a layer's length to show all rows, live or not, and set it back."""
        layer = self._layer()
        length = self.store.layers[layer].length
        return [{"op": "setlength", "layer": layer, "n": n} for n in (self.store.room, length)]

    def _reset(self) -> Operation:
        return {"op": "reset"}

    def _zero(self) -> Operation:
        return {"op": "zero"}

    def _scribble(self) -> Operation:
        return {"op": "scribble"}

    def _fingerprint(self) -> Operation:
        room = self.store.room
        return {
            "op": "fingerprint",
            "position": self.of(self.draw(st.integers(0, room - 1)), room - 1, room, -1),
        }

    def _save(self) -> Operation:
        return {"op": "save", "name": self.draw(st.sampled_from(("s", "t")))}

    def _load(self) -> Operation:
        names = sorted(self.session.names["saved store"])
        if not names:
            return self._save()
        changes: tuple[dict[str, Any], ...] = ({},) * 8 + (
            {"layers": 1},
            {"layers": 6},
            {"kv_heads": 5},
            {"v_dim": 17},
            {"dtype": "bf16"},
        )
        return {"op": "load", "name": self.draw(st.sampled_from(names)), **self.draw(st.sampled_from(changes))}

    def _init(self) -> Operation:
        room = self.store.room
        changes: tuple[dict[str, Any], ...] = (
            {},
            {},
            {"max_len": room + 1},
            {"max_len": max(1, room - 1)},
            {"layers": 3},
            {"kv_heads": 2},
            {"k_dim": 6},
            {"v_dim": 6},
            {"dtype": "f32"},
        )
        wrong = ({"layers": 0}, {"k_dim": -1})
        return {"op": "init", **self.draw(st.sampled_from(changes + wrong))}

    def _open(self) -> Operation:
        changes: tuple[dict[str, Any], ...] = ({}, {"max_len": 9}, {"max_len": 2}, {"layers": 2}, {"dtype": "f32"})
        return {"op": "open", "cache": "B", **self.draw(st.sampled_from(changes))}


def strategies() -> Iterator[Any]:
    """What explores this chapter: a strategy for each way."""
    yield explored()


EXPLORATIONS = (Exploration("store", (), explored),)
