"""STORE: small stores with every operation from every state; larger ones, whose layers differ in length."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from kvconform.cover import Ops, Plan
from kvconform.lists import Lists
from kvconform.replay import Supplies
from kvconform.strategies.moves import ops, single
from kvref.listed_store import Listed
from kvspec import notation
from kvspec.contract import Claim, Description
from kvspec.geometry import Config
from kvspec.operations import Operation
from kvspec.session import Session
from kvspec.trace import Trace

SIZES = ((1, 3), (2, 1), (3, 1), (2, 2))
"""Layers and rows of the stores that are covered."""

FAR = (1 << 31, (1 << 31) - 1, -(1 << 31))
"""Where a narrower number changes its sign."""

LONGEST = 24
"""Operations of a trace."""


def moves(session: Session) -> list[Ops]:
    """What changes rows or lengths; and what is refused, or comes back to where it was."""
    store = session.caches["A"]
    layers, room = len(store.lengths_), store.max_len
    appends = [f"append {n}" for n in range(1, room + 2)] + [f"append 1 layer={x}" for x in range(layers)]
    lengths = [f"setlength {x} {n}" for x in range(layers) for n in range(room + 1)]
    back = [f"rollback {to}" for to in range(room + 1)]
    return single([*appends, *lengths, *back, "reset", "zero", *_loads(layers), *_still(layers, room)])


def _loads(layers: int) -> list[str]:
    """Saved, changed and loaded again; by way of another geometry too."""
    between = ["", "reset; append 1; ", f"zero; append 1 layer={layers - 1}; ", "init max_len=4; append 4; "]
    return [f"save s; {x}load s; save t" for x in between]


def _still(layers: int, room: int) -> list[str]:
    """What leaves the store as it was: it asks, is refused, or has nothing to do."""
    refused = [f"append 1 layer={x}" for x in (-1, layers)] + [f"append 2 layer={layers - 1} {m}" for m in _misfits()]
    lengths = [f"setlength {x} 0" for x in (-1, layers, *FAR)] + [f"setlength 0 {n}" for n in (-1, room + 1, *FAR)]
    back = ["rollback -1", f"rollback {-FAR[0]}", f"rollback {FAR[0]}", f"rollback {room + 1}"]
    changed = ("layers=0", f"layers={layers + 1}", "kv_heads=1", "k_dim=7", "v_dim=7", "dtype=f32", f"values={room + 1}")
    loads = ["; ".join(["save s", *(f"load s {c}" for c in changed)])]
    inits = ["init", "init layers=0", "init max_len=-1", "init kv_heads=0", "init k_dim=0"]
    sums = [f"fingerprint {p}" for p in (-1, *range(room + 1), FAR[0])]
    nothing = ["append 0", f"append 0 layer={layers}", "append 0 kv_heads=5", "scribble", f"open B max_len={room - 1}"]
    return [*refused, *lengths, *back, *loads, *inits, *sums, *nothing]


def _misfits() -> list[str]:
    return ["kv_heads=3", "k_dim=9", "v_dim=7", "dtype=f32", "values=1", "batch=2"]


def continuations(session: Session) -> Sequence[Ops]:
    """One row to each layer, behind a length that was lowered; then every row is shown, live or not."""
    store = session.caches["A"]
    layers = range(len(store.lengths_))
    last = [f"append 1 layer={x}" for x in layers] + [f"setlength {x} {store.max_len}" for x in layers]
    return [ops("; ".join([*last, "fingerprint 0"]))]


def plans() -> list[Plan]:
    """One for each size."""
    return [_plan(Config(layers=layers, max_len=room)) for layers, room in SIZES]


def _plan(config: Config) -> Plan:
    name = f"store layers={config.layers} max_len={config.max_len}"
    return Plan(name, Trace("store", config), moves, continuations, look=ops("append 0"))
