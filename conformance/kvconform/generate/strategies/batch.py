"""BATCH: every operation from every state of small batches, and random traces on larger ones of unequal lengths."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

SIZES = ((1, 2, 2), (2, 1, 2), (2, 2, 1), (1, 1, 3))
"""Layers, rows and sequences of the covered batches."""

FAR = 1 << 31
"""Here a 32-bit integer changes its sign."""

MISFITS = ("kv_heads=1", "kv_heads=3", "k_dim=9", "v_dim=5", "dtype=f32", "batch=2", "values=0", "values=2")
"""Rows of another geometry."""

WITHOUT = ("scatter 0 0", "step", "rollback 0 sequence=0", "resetbatch", "capture w", "freebatch", "batch 0")
"""Moves without a batch: all are refused, except freeing, which does nothing."""

LONGEST = 30
"""Most operations of a trace."""


def moves(most: int, session: Session) -> list[str]:
    """Give moves that change the batch of a full store, each after a captured step, and moves that do not."""
    store = session.caches["A"]
    if not any(store.lengths_):
        return [f"append {store.max_len}"]
    sizes = [f"batch {m}" for m in range(1, most + 1)]
    if store.batch_ is None:
        return [*sizes, *WITHOUT]
    changing = (f"capture w; {x}" for x in (*sizes, "replay w", "freebatch", *_changing(store)))
    return [*changing, *_still(store)]


def _changing(store: Any) -> list[str]:
    """Give scatters, steps, rollbacks and captured work."""
    m, layers, room = len(store.batch_.lengths), len(store.lengths_), store.max_len
    whole = [f"scatter {s} {n}" for s in range(m) for n in range(room + 1)]
    parts = [f"{x} layer={layer}" for x in whole for layer in range(layers) if layers > 1]
    back = [f"rollback {to} sequence={s}" for s in range(m) for to in range(room)]
    return [*whole, *parts, *back, "step", "resetbatch"]


def _still(store: Any) -> list[str]:
    """Give moves that leave the batch unchanged: refused, empty, or on the store or another store."""
    m, layers, room = len(store.batch_.lengths), len(store.lengths_), store.max_len
    places = [f"scatter {s} 0" for s in (m, -1, FAR, -FAR)] + [f"rollback 0 sequence={s}" for s in (m, -1)]
    counts = [f"scatter {m - 1} {n}" for n in (room + 1, -1, FAR, -FAR)]
    missing = [f"scatter 0 0 layer={x}" for x in (layers, -1)]
    back = [f"rollback {to} sequence={m - 1}" for to in (-1, -FAR, room + 1, FAR)]
    sizes = ["batch 0", "batch 33", f"batch {m} most={m - 1}", f"batch {-FAR}"]
    last, whole = f"setlength {layers - 1}", f"scatter {m - 1} {room}"
    short = f"{last} {room - 1}; {whole}; {whole} layer={layers - 1}; {last} {room}"
    beside = [
        short,
        "scribble",
        "append 0",
        "init",
        f"reset; append {room}",
        f"save s; zero; load s; rollback {room}",
    ]
    other = f"open B; B: batch {m}; B: step; B: capture v; B: replay v; B: freebatch; capture v"
    return [*places, *counts, *missing, *back, *sizes, *(f"step {x}" for x in MISFITS), *beside, other]


def continuations(most: int, session: Session) -> list[str]:
    """Give a replay and a step, which show lengths and holes, and the largest batch, to test for memory."""
    larger = "; ".join(f"batch {m}" for m in range(min(2, most), most + 1))
    if "w" not in session.captured:
        return [f"step; {larger}; step"]
    return [f"replay w; step; {larger}; replay w"]


def plans() -> list[Plan]:
    """Plan one for each size."""
    return [_plan(Config(layers=layers, max_len=room), most) for layers, room, most in SIZES]


def _plan(config: Config, most: int) -> Plan:
    name = f"batch layers={config.layers} max_len={config.max_len} sequences<={most}"
    texts = partial(moves, most), partial(continuations, most)
    return plan(name, Trace("store", config), *texts, look="append 0")


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any geometry, with few rows, so that sequences fill up."""
    return geometry(draw).changed(
        layers=draw(st.integers(1, 4)),
        max_len=mostly(draw, st.integers(1, 4), st.integers(5, 12)),
    )


KINDS = (
    *("step",) * 7,
    *("scatter",) * 5,
    *("layer",) * 4,
    *("replay",) * 4,
    *("rollback",) * 3,
    *("batch", "capture", "append") * 2,
    *("shorten", "misfit", "beyond", "resetbatch", "freebatch", "reinit", "scribble", "beside"),
)
"""Kinds of operations. A kind listed more often is drawn more often."""


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace of all operations of a store with a batch."""
    config = draw(configs())
    length = draw(st.integers(4, LONGEST))
    drawing = _Drawing(draw, Trace("store", config))
    drawing.do(f"append {draw(st.integers(0, config.max_len or 1))}; batch {drawing.number(1, 5)}")
    if draw(st.booleans()):
        drawing.do(f"append {drawing.number(1, 2)} layer={drawing.number(0, (config.layers or 1) - 1)}")
    return drawing.until(length, KINDS)


class _Drawing(Drawing):
    """Draws a trace on a store and its batch."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = self.of(*[""] * 4, " fill=bits")

    @property
    def sequences(self) -> list[Any]:
        """Give the sequences of the batch."""
        return self.model.batched.all if self.model.batched else []

    def _sequence(self) -> int:
        return self.number(0, len(self.sequences) - 1)

    def _step(self) -> str:
        return f"step{self.fill}"

    def _scatter(self) -> str:
        """Scatter up to the rows that all layers have; at times as many as the longest layer has."""
        lengths = [layer.length for layer in self.model.layers]
        shortest, longest = min(lengths), max(lengths)
        n = self.of(shortest, shortest, shortest, *[self.number(0, shortest)] * 3, longest)
        return f"scatter {self._sequence()} {n}"

    def _layer(self) -> str:
        """Append to one layer, or to all layers one after another, each by its own number of rows."""
        s, layers = self._sequence(), list(enumerate(self.model.layers))
        if self.draw(st.booleans()):
            n = min(layer.length for _, layer in layers)
            return "; ".join(f"scatter {s} {n} layer={i}" for i, _ in self.draw(st.permutations(layers)))
        i, layer = self.of(*layers)
        return f"scatter {s} {self.number(0, layer.length)} layer={i}"

    def _capture(self) -> str:
        return f"capture {self.of('w', 'v')}" if self.sequences else ""

    def _replay(self) -> str:
        names = sorted(self.session.names["captured work"])
        return f"replay {self.of(*names)}{self.fill}" if names else self._capture()

    def _rollback(self) -> str:
        s = self._sequence()
        length = self.sequences[s].length if self.sequences else 1
        return f"rollback {self.number(0, length)} sequence={s}"

    def _batch(self) -> str:
        places = self.model.batched.places if self.model.batched else 1
        return f"batch {self.number(1, places if self.draw(st.booleans()) else 6)}"

    def _append(self) -> str:
        n, layer = self.number(0, 3), self.number(0, len(self.model.layers) - 1)
        return f"append {n}{self.of('', f' layer={layer}')}{self.fill}"

    def _shorten(self) -> str:
        return self.of(f"rollback {self.number(0, self.model.room)}", "reset", "zero")

    def _misfit(self) -> str:
        return f"step {self.of(*MISFITS)}"

    def _beyond(self) -> str:
        m, layers, room = len(self.sequences), len(self.model.layers), self.model.room
        places = f"scatter {m} 0", "scatter -1 0", f"scatter 0 0 layer={layers}", f"rollback 0 sequence={m}"
        longer = min(layer.length for layer in self.model.layers) + 1
        counts = f"scatter 0 {room + 1}", f"scatter 0 {longer}", "scatter 0 -1", "rollback -1 sequence=0"
        far = f"scatter {FAR} 0", f"scatter 0 {FAR}", f"rollback {FAR} sequence=0", f"batch {FAR}"
        return self.of(*places, *counts, *far, "batch 0", "batch 33", f"batch {m} most={m - 1}")

    def _beside(self) -> str:
        """Use another store with its own batch."""
        if "B" not in self.session.caches:
            return f"open B; B: batch {self.number(1, 3)}"
        return f"B: {self.of('append 1', 'step', 'step', 'scatter 0 1', 'freebatch')}"

    def _freebatch(self) -> str:
        return "freebatch" if self.draw(st.booleans()) else ""

    def _reinit(self) -> str:
        return f"init {self.of('', '', f'max_len={self.number(1, 6)}', 'kv_heads=2 k_dim=6')}"


EXPLORATIONS = (Exploration("batch", ("store",), explored, "store"),)

WALKS = Moves(
    {
        ("store",): (
            "batch {m}",
            "batch {fewer}; step{fill}; step; batch {m}; step{fill}",
            "batch 0",
            "scatter {s} {least}",
            "scatter {s} {here} layer={l}",
            "scatter {s} {over}",
            "scatter {gone} 0",
            "step{fill}",
            "step",
            "step v_dim=3",
            "rollback {back} sequence={s}",
            "rollback {far} sequence={s}",
            "resetbatch",
            "freebatch",
            "capture w; replay w{fill}",
            "replay {w}{fill}",
            "attendbatch {l} heads={heads} splits=2",
            "captureattend g {l}; replayattend g",
            "replayattend {g}",
        )
    }
)
