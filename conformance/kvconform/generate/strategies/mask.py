"""MASK: every kind of mask after every transition of a small cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvconform.generate.strategies import cache_moves, growing, ring
from kvconform.generate.strategies.plan_moves import Plan, name, plan
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.geometry import Config
from kvspec.registry import CACHES
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvspec.session.driver import Session

BOUND = 4


def moves(session: Session) -> list[str]:
    """Give the cache's moves, and the snapshots and restores that keep or end a history."""
    cache = session.caches["A"]
    base = growing.moves(session, BOUND, 3) if cache.kind == "growing" else ring.moves(session)
    return [*base, f"snapshot s; restore s {cache.offset}", "snapshot s; rewind -1"]


def battery(session: Session) -> list[str]:
    """Give one continuation: all masks that this history should take or refuse, then an append."""
    cache = session.caches["A"]
    if cache.queries is None:
        return ["mask none; append 1"]
    queries, rows = cache.queries, len(cache.read("history").keys[0, 0])
    texts = ["mask none", "mask window=1", "mask window=2"]
    texts += [f"mask {m}" for m in (_arrays if queries else _no_queries)(queries, rows)] if rows else []
    return ["; ".join([*texts, "mask causal", "append 1"])]


def _arrays(queries: int, rows: int) -> list[str]:
    """Give arrays. Some are scores that name their column, some hide rows from all, some or some heads. Some axes
    are too long."""
    scores = "[" + " / ".join(" ".join(f"{-(10 * q + j)}" for j in range(rows)) for q in range(queries)) + "]"
    some = "/".join("".join(str((q + j) % 2) for j in range(rows)) for q in range(queries))
    one = "/".join(str(q % 2) for q in range(queries))
    hidden, shown, wide = ("/".join([line] * queries) for line in ("0" * rows, "1" * rows, "1" * (rows + 1)))
    heads = f"{some},{hidden},{shown}"
    taken = [scores, some, one, heads, f"{some}+{hidden}", f"{some},{hidden} & {heads}", hidden]
    mixed = [f"causal & {some}", f"window=2 & {scores}", f"{some} & {scores}"]
    return [*taken, *mixed, wide, f"{shown}/{'1' * rows}"]


def _no_queries(queries: int, rows: int) -> list[str]:
    """Give arrays for a history that has no queries."""
    return [f"bool[1,1,{queries},{rows}]", f"f32[1,1,{queries},1]", f"bool[1,1,{queries},{rows + 1}]"]


def plans() -> list[Plan]:
    """Plan small growing caches and rings."""
    starts = [Trace("growing", Config(step=2))]
    starts += [Trace("ring", Config(window=w, step=s)) for w, s in ((1, 256), (2, 256), (3, 2))]
    return [plan(f"mask {name(t, BOUND)}", t, moves, battery, histories=True) for t in starts]


EXPLORATIONS = tuple(cache_moves.on_cache(kind, cache_moves.MASKS) for kind in CACHES)

WALKS = Moves({cache_moves.OF_ONE: ("append {few}; mask causal & window=3", "mask window=0")})
