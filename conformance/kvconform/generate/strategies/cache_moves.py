"""What traces on a cache of one sequence consist of: the operations of explorations, and the moves of walks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.walk_moves import Numbers, Scale, beyond, inside, of_parcels, unseen

BASE = (
    ("append",) * 8 + ("run", "twice") + ("rewind",) * 3 + ("ask", "view", "free", "scribble", "misfit", "beside")
)
WITH_PARCELS = (*BASE, *("parcel",) * 6)
MASKS = BASE + ("mask",) * 8
PIECES = ("resumed", "resumed", "pieces", "pieces", "elsewhere", "again")
SNAPSHOTS = BASE + ("snapshot",) * 4 + ("restore",) * 4 + ("split", "merge", "merge", "close", "open") + PIECES
EVERYTHING = MASKS + SNAPSHOTS


def on_cache(kind: str, operations: tuple[str, ...], name: str = "", *needs: str) -> Exploration:
    """Traces on a cache of one sequence."""
    return Exploration(name or kind, (kind, *needs), partial(_drawn, kind, operations), kind, of_one=True)


def _drawn(kind: str, operations: tuple[str, ...], traces: Callable[[str, tuple[str, ...]], Any]) -> Any:
    return traces(kind, operations)


OF_ONE = ("growing", "ring", "bounded", "sink")
"""Kinds of one sequence."""

MOVES = (
    "append {n}{fill}",
    "append 1{fill}",
    "append {n} v_dim=3",
    "rewind {to}",
    "rewind {beyond}",
    "free",
    "append 1; free",
    "view; view; ask {to}; view",
    "ask {beyond}",
    "scribble",
)
"""Moves of a walk on each of them."""


def numbers(session: Any, random: Random) -> Numbers:
    """Draw places inside and beyond what a cache and its snapshot hold."""
    cache, saved = session.caches["A"], session.snapshots.get("s")
    offset = int(cache.offset)
    found = {"to": inside(offset, random), "beyond": beyond(offset, random), "length": offset}
    found |= {"half": offset // 2, "late": offset - offset // 4}
    if saved is not None:
        found |= {"stop": random.choice((saved.stop, saved.stop, max(saved.start, saved.stop - 1)))}
        found |= {"later": saved.stop + random.choice((1, 2))}
    return found | of_parcels(session)


def sized(scale: Scale, turn: int, *own: str) -> tuple[str, ...]:
    """Give the fields of a cache at a scale, and the rows before its first move."""
    step = (1, 3, 256)[turn % 3]
    return scale.fields(f"batch={scale.batch} step={step}", *own), unseen(scale) or "append 1"
