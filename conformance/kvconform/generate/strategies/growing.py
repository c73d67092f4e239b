"""GROW: small growth steps, and offsets up to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvconform.generate.strategies import cache_moves
from kvconform.generate.strategies.plan_moves import Plan, appends_after, name, plan, rewinds
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.geometry import Config
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvspec.session.driver import Session

BOUND = 7
"""Largest offset in the cover: past two growths of three rows."""

STEPS = (1, 3)


def moves(session: Session, bound: int = BOUND, chunk: int = 4) -> list[str]:
    """Give every operation on a growing cache; appends only up to the bound."""
    offset = session.caches["A"].offset
    appends = [f"append {n}" for n in range(chunk + 1) if offset + n <= bound]
    return [*appends, *rewinds(offset, near=False), f"ask {offset - 1}", "view", "free", "scribble"]


def plans() -> list[Plan]:
    """Plan one cache for each step."""
    starts = [Trace("growing", Config(step=s)) for s in STEPS]
    return [plan(name(t, BOUND), t, moves, appends_after) for t in starts]


EXPLORATIONS = (cache_moves.on_cache("growing", cache_moves.BASE),)

WALKS = Moves({("growing",): cache_moves.MOVES}, cache_moves.numbers, cache_moves.sized)
