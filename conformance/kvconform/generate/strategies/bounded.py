"""BOUNDED: small bounds, and steps that meet them or pass them."""

from __future__ import annotations

from functools import partial
from typing import Any

from kvconform.generate.strategies import cache_moves, caches
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan, rewinds
from kvconform.generate.strategies.walk_moves import Moves, Scale
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

SIZES = ((1, 256), (2, 1), (3, 2), (4, 256), (5, 2), (6, 4))
"""Bounds and steps: one row at most, steps that end at the bound, that end before it, and that are longer."""


def moves(session: Session) -> list[str]:
    """Give every operation on a bounded cache, with appends of up to two rows more than fit."""
    cache = session.caches["A"]
    room = cache.max_len - cache.offset
    appends = [f"append {n}" for n in range(room + 3)]
    misfits = [f"append {n} k_dim=7" for n in (1, room + 1)]
    return [*appends, *misfits, *rewinds(cache.offset, near=False), f"ask {cache.offset - 1}", *STILL]


STILL = ("view", "free", "scribble")


def continuations(session: Session) -> list[str]:
    """Give appends that fill the cache to its end, at once and row by row, and then one row more."""
    room = session.caches["A"].max_len - session.caches["A"].offset
    one_by_one = "; ".join(["append 1"] * (room + 1))
    return [f"append {room + 1}; view; append {room}; append 1; view", f"{one_by_one}; view"]


def plans() -> list[Plan]:
    """Plan one cache for each bound and step."""
    starts = [Trace("bounded", Config(max_len=n, step=s)) for n, s in SIZES]
    return [
        plan(f"bounded max_len={n} step={s}", t, moves, continuations)
        for (n, s), t in zip(SIZES, starts, strict=True)
    ]


explored: Any = partial(caches.traces, "bounded", cache_moves.BASE)
"""Draw a trace on a bounded cache."""

EXPLORATIONS = (Exploration("bounded", (), explored, "bounded"),)


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    return cache_moves.sized(scale, turn, f"max_len={scale.room}")


WALKS = Moves({("bounded",): cache_moves.MOVES}, cache_moves.numbers, _sized)
