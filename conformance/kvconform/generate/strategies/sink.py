"""SINK: windows that count the sinks, windows beside them, and chunks up to one longer than what a query sees."""

from __future__ import annotations

from typing import Any

from kvconform.generate.covers import Plan
from kvconform.generate.strategies import caches
from kvconform.generate.strategies.mask import battery
from kvconform.generate.strategies.plan_moves import plan, rewinds
from kvconform.generate.strategies.walk_moves import Moves, Scale
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

COUNTED = ((2, 1), (3, 1), (3, 2), (4, 2))
"""Windows that count the sinks, and how many sinks."""

BESIDE = ((1, 1), (2, 1), (1, 2))
"""Windows beside sinks, and how many sinks."""

OPERATIONS = (*caches.BASE, *("A: positions",) * 3)


def moves(session: Session) -> list[str]:
    """Give every operation on a window beside sinks."""
    cache = session.caches["A"]
    appends = [f"append {n}" for n in range(cache.most + 2)]
    targets = rewinds(cache.offset, near=cache.offset > cache.most)
    return [*appends, *targets, f"ask {cache.offset - 1}", "positions", "view", "free", "scribble"]


def continuations(session: Session) -> list[str]:
    """Give appends that distinguish states, with the positions after each."""
    return ["append 1; positions; append 1; positions; view", "append 2; positions; view"]


def plans() -> list[Plan]:
    """Plan each size, with positions kept and with positions shifted; then masks on a few."""
    sizes = [Config(window=w, sinks=s) for w, s in COUNTED]
    sizes += [Config(window=w, sinks=s, beside=1) for w, s in BESIDE]
    configs = [config.changed(shifted=i % 2 or None) for i, config in enumerate(sizes)]
    masked = [sizes[1].changed(shifted=1), sizes[-1]]
    return [
        *(plan(_name(c), Trace("sink", c), moves, continuations) for c in configs),
        *(plan(f"{_name(c)} masks", Trace("sink", c), moves, battery, histories=True) for c in masked),
    ]


def _name(config: Config) -> str:
    fields = ("window", "sinks", "beside", "shifted")
    return " ".join(["sink", *(f"{f}={value}" for f in fields if (value := getattr(config, f)))])


def explored() -> Any:
    """Draw traces on larger sizes."""
    return caches.traces("sink", OPERATIONS)


EXPLORATIONS = (caches.on_cache("sink", OPERATIONS),)


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    places = " shifted=1" if turn % 2 else ""
    return caches.sized(scale, turn, f"window={scale.size(turn)} sinks=2 beside=1{places}")


WALKS = Moves({("sink",): (*caches.MOVES, "positions")}, caches.numbers, _sized)
