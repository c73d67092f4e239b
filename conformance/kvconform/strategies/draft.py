"""DRAFT: rounds over a ring in every phase of its wrap, over two caches with layers that have none, and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvconform.cover import Ops, Plan
from kvconform.strategies.moves import ops, single
from kvspec.geometry import Config
from kvspec.session import Session
from kvspec.trace import Trace

WINDOWS = (1, 2, 3)

BUSY = "append 1; append 0; view; ask 0; rewind 0; free; snapshot s; speculate q A; speculate q A isolated=1"
"""What a cache in an open round is asked in vain."""

ENDED = "commit r 9; draft r 0; abandon r"
"""What a round that has ended is asked in vain."""


def drafts(session: Session, layer: int = 0) -> int:
    """How many drafts the open round r has on a layer."""
    return int(session.rounds["r"].inner.layers[layer].drafts)


def in_round(session: Session) -> bool:
    """Whether the round r is open."""
    return "r" in session.rounds and session.rounds["r"].open


def ring_moves(session: Session) -> list[Ops]:
    """In a round drafts, every end, and what is refused; else what moves the ring on, and an isolated round."""
    ring = session.caches["A"]
    if in_round(session):
        k = drafts(session)
        more = [f"draft r {n}" for n in (0, 1, 2) if k + n <= ring.window + 2]
        ends = [*(f"commit r {n}" for n in range(k + 1)), *(["commit r -1", "commit r 3", "abandon r"] if k == 2 else [])]
        return single([*more, *ends, "draft r 1 k_dim=5", BUSY])
    back = ["rewind 0", f"rewind {ring.offset - 1}"] if 0 < ring.offset <= ring.window else []
    live = ["append 1", f"append {ring.window + 1}", *back, "free", "speculate r A"]
    return single([*live, "speculate r AA", *_isolated(session)])


def _isolated(session: Session) -> list[str]:
    """Isolated rounds whose cache is changed meanwhile, one inside the other's time."""
    window = session.caches["A"].config.window
    changes = ("append 1", f"append {(window or 2) + 1}", "free")
    begin = "speculate q A isolated=1; draft q 2"
    end = "draft q 1; speculate t A isolated=1; draft t 1; commit q 1; abandon q; abandon t"
    return [f"{begin}; {change}; {end}" for change in changes]


def ring_continuations(session: Session) -> Sequence[Ops]:
    """An open round is ended both ways; then appends tell what is left."""
    if in_round(session):
        k = drafts(session)
        return [ops(f"commit r {k}; append 1; view")]
    after = ops(ENDED) if "r" in session.rounds else ()
    return [after + ops("append 1; append 2; view")]


BOUND = 3
"""Offset up to which the growing cache of two goes."""

def two_moves(session: Session) -> list[Ops]:
    """Rounds from begin to end over a growing cache A and a ring B, and what moves the two on."""
    if "B" not in session.caches:
        return [ops("open B profile=ring window=2")]
    offset = session.caches["A"].offset
    live = ["B: append 1", "rewind 0", "B: free", *(["append 1"] if offset < BOUND else [])]
    kept = range(min(2, BOUND - offset) + 1)
    rounds = [_round("AB", n) for n in kept] + [_round(shape, max(kept)) for shape in ("B-A", "-A")]
    return single([*live, *rounds, _uneven(max(kept))])


def _round(shape: str, n: int) -> str:
    both = "B: draft r 1; draft r 2; B: draft r 1" if "B" in shape else "draft r 1; draft r 1"
    return f"speculate r {shape}; {both}; {f'commit r {n}' if n else 'abandon r'}"


def _uneven(n: int) -> str:
    """Layers that drafted different numbers, rows of a wrong geometry among them."""
    return f"speculate r AB; draft r 3; B: draft r {n}; B: draft r 2 v_dim=5; commit r {n + 1}; commit r {n}"


def two_continuations(session: Session) -> Sequence[Ops]:
    """What both caches hold."""
    if "B" not in session.caches:
        return [ops("view")]
    return [ops(ENDED if "r" in session.rounds else "view", "append 1; B: append 1; B: append 1; B: view; view")]


def plans() -> list[Plan]:
    """A ring alone for each window; a growing cache and a ring together."""
    rings = [Trace("ring", Config(window=w)) for w in WINDOWS]
    both = Trace("growing", Config(step=2))
    return [
        *(Plan(f"draft ring window={t.config.window}", t, ring_moves, ring_continuations, ()) for t in rings),
        Plan("draft growing and ring", both, two_moves, two_continuations, (), ("A", "B")),
    ]
