"""GROW: small growth steps; offsets up to a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvconform.generate.covers import Ops, Plan
from kvconform.generate.strategies import caches
from kvconform.generate.strategies.exploration import on_cache
from kvconform.generate.strategies.plan_moves import appends_after, name, rewinds, single
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

BOUND = 7
"""Largest offset in the cover: past two growths of three rows."""

STEPS = (1, 2, 3)


def moves(session: Session, bound: int = BOUND, chunk: int = 4) -> list[Ops]:
    """Give every operation on a growing cache; appends only up to the bound."""
    offset = session.caches["A"].offset
    appends = [f"append {n}" for n in range(chunk + 1) if offset + n <= bound]
    return single([*appends, *rewinds(offset, near=False), f"ask {offset - 1}", "view", "free", "scribble"])


def plans() -> list[Plan]:
    """Plan one cache for each step."""
    starts = [Trace("growing", Config(step=s)) for s in STEPS]
    return [Plan(name(t, BOUND), t, moves, appends_after) for t in starts]


def strategies() -> Iterator[Any]:
    """What explores this chapter: a strategy for each way."""
    yield caches.traces("growing", caches.BASE)


EXPLORATIONS = (on_cache("growing", caches.BASE),)
