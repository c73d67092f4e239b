"""SINK: windows that count the sinks, windows beside them, and chunks up to one longer than what a query sees."""

from __future__ import annotations

from random import Random
from typing import Any

from kvconform.generate.strategies import cache_moves, caches
from kvconform.generate.strategies.mask import battery
from kvconform.generate.strategies.plan_moves import Plan, plan, rewinds
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale
from kvspec.geometry import Config
from kvspec.operations.table import listed, positions_named
from kvspec.session.driver import Session
from kvspec.trace import Trace

COUNTED = ((2, 1), (3, 1), (3, 2), (4, 2))
"""Windows that count the sinks, and how many sinks."""

BESIDE = ((1, 1), (2, 1), (1, 2))
"""Windows beside sinks, and how many sinks."""

OPERATIONS = (*cache_moves.BASE, *("A: positions",) * 3)


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
    """Plan each size, with positions kept and with positions shifted; then rows that are chosen, and masks, on a
    few."""
    sizes = [Config(window=w, sinks=s) for w, s in COUNTED]
    sizes += [Config(window=w, sinks=s, beside=1) for w, s in BESIDE]
    configs = [config.changed(shifted=i % 2 or None) for i, config in enumerate(sizes)]
    kept = [sizes[1], sizes[4].changed(shifted=1)]
    masked = [sizes[1].changed(shifted=1), sizes[-1]]
    return [
        *(plan(_name(c), Trace("sink", c), moves, continuations) for c in configs),
        *(plan(f"{_name(c)} keep", Trace("sink", c), keeps, continuations) for c in kept),
        *(plan(f"{_name(c)} masks", Trace("sink", c), moves, battery, histories=True) for c in masked),
    ]


def keeps(session: Session) -> list[str]:
    """Give appends, rewinds, and lists to keep: all rows but one, one alone, all, and such as are refused."""
    cache = session.caches["A"]
    seen = cache.positions_seen()
    some = [seen[:i] + seen[i + 1 :] for i in range(len(seen))] if len(seen) > 1 else []
    some += [[p] for p in seen] + [seen, seen[::-1]]
    refused = ["empty", str(cache.offset), *([f"{seen[0]},{seen[0]}"] if seen else [])]
    texts = dict.fromkeys([*map(listed, some), *refused])
    targets = {0, cache.chosen.at - 1, cache.chosen.at, cache.offset - 1}
    back = [f"rewind {to}" for to in sorted(targets) if 0 <= to <= cache.offset]
    return [*(f"append {n}" for n in (1, 2, cache.most + 1)), *back, "free", *(f"keep {text}" for text in texts)]


def _name(config: Config) -> str:
    fields = ("window", "sinks", "beside", "shifted")
    return " ".join(["sink", *(f"{f}={value}" for f in fields if (value := getattr(config, f)))])


def explored() -> Any:
    """Draw traces on larger sizes."""
    return caches.traces("sink", OPERATIONS)


EXPLORATIONS = (cache_moves.on_cache("sink", OPERATIONS),)


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    places = " shifted=1" if turn % 2 else ""
    return cache_moves.sized(scale, turn, f"window={scale.size(turn)} sinks=2 beside=1{places}")


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw numbers as of any cache, and rows to keep: the newest half, each third, or all, beside the first."""
    found, seen = cache_moves.numbers(session, random), session.caches["A"].seen()
    if not seen:
        return found
    last, half = seen[-1], seen[len(seen) // 2]
    each = f"{seen[len(seen) // 4]}-{last}/{random.choice((1, 3))}" if len(seen) > 4 else positions_named(seen[1:])
    kept = random.choice((f"{half}-{last}", positions_named(seen), each, str(last)))
    first = "" if kept.startswith(f"{seen[0]}-") or kept == f"{seen[0]}" else f"{seen[0]},"
    return found | {"kept": positions_named(seen) if kept == "empty" else first + kept}


WALKS = Moves({("sink",): (*cache_moves.MOVES, "positions", "keep {kept}", "keep {beyond}")}, _numbers, _sized)
