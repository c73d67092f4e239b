"""RING: windows up to five, chunks up to one longer than the window."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvconform.generate.strategies import cache_moves
from kvconform.generate.strategies.plan_moves import Plan, appends_after, name, plan, rewinds
from kvconform.generate.strategies.walk_moves import Moves, Scale
from kvspec.geometry import Config
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvspec.session.driver import Session

WINDOWS = (1, 2, 3, 4, 5)
STEPS = (1, 2, 3, 256)

NOT_COVERED = ((4, 2), (5, 1), (5, 2))
"""Windows and steps that no frozen cover has: each step is tried with smaller windows, and each window with others.
No known bug, and no fault of a sample of the systematic ones, shows in these alone."""


def moves(session: Session) -> list[str]:
    """Give every operation on a ring."""
    ring = session.caches["A"]
    appends = [f"append {n}" for n in range(ring.window + 2)]
    targets = rewinds(ring.offset, near=ring.offset > ring.window)
    return [*appends, *targets, f"ask {ring.offset - 1}", "view", "free", "scribble"]


def plans(windows: Iterable[int] = ()) -> list[Plan]:
    """Plan one for each of these windows and each growth step, or for those that are covered; steps beyond the
    window all act alike."""
    sizes = [(w, s) for w in windows or WINDOWS for s in STEPS if s < w or s == STEPS[-1]]
    starts = [Trace("ring", Config(window=w, step=s)) for w, s in sizes if windows or (w, s) not in NOT_COVERED]
    return [plan(name(t, 0), t, moves, appends_after) for t in starts]


EXPLORATIONS = (cache_moves.on_cache("ring", cache_moves.BASE),)


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    return cache_moves.sized(scale, turn, f"window={scale.size(turn)}")


WALKS = Moves({("ring",): cache_moves.MOVES}, cache_moves.numbers, _sized)
