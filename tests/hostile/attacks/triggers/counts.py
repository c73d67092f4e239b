"""At the n-th call; and where somebody looked, or nobody did."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Event

COUNTS = (3, 5, 9, 17)

OFTEN = (33, 65, 130, 260, 300)

CALLED_OFTEN = ("append", "step", "attend", "decode", "feed", "compute", "answer", "draft", "copy", "block")
CALLED_OFTEN += ("branch", "attend_block")
"""The calls of methods that are called for each token."""


def counts() -> Iterator[Trigger]:
    """At the n-th call of a cache, and from then on."""
    for n in (*COUNTS, *OFTEN):
        suits = (lambda w: w.method in CALLED_OFTEN) if n in OFTEN else (lambda w: True)
        yield Trigger(f"call {n}", "count", lambda e, n=n: counted(e) == n, suits)


def counted(event: Event) -> int:
    """The calls of a method so far; a meter is wrong from a call on, because only differences count."""
    n = event.life.calls[event.where.method]
    return max((c for c in (*COUNTS, *OFTEN) if c <= n), default=0) if event.where.method == "meter" else n


def observations() -> Iterator[Trigger]:
    """Only unseen, or only seen."""
    changes = ("append", "rewind", "step", "rollback", "truncate", "feed", "trim", "decode", "copy")
    changes += ("branch", "settle", "attend_block")
    yield Trigger(
        "nobody looked since",
        "observation",
        lambda e: bool(e.life.done) and not e.life.looks,
        lambda w: w.method in changes,
    )
    yield Trigger(
        "somebody looked before", "observation", lambda e: e.life.looks > 0, lambda w: w.method in changes
    )
    yield Trigger(
        "looked at often", "observation", lambda e: e.life.looks >= 4, lambda w: w.method in (*changes, "read")
    )
