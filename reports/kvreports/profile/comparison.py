"""Two profiles of one adapter: each case before and now, what got slower on top."""

from __future__ import annotations

from kvreports.profile import figures
from kvreports.profile.findings import SLOW, best, over, strict, why
from kvspec.records.profile import Measurement, Profile

HEAD = ("case", "before", "now", "now / before", "fastest peer", "/ fastest peer", "of limit", "why slow")
"""The columns: median times until everything was done, and a reason if the fastest peer is well ahead."""

Pair = tuple[Measurement, Measurement]


def pairs(before: Profile, now: Profile) -> list[Pair]:
    """The cases of both, those first whose time grew most."""
    old = {case.id: case for case in before.measurements}
    both = [(old[case.id], case) for case in now.measurements if case.id in old]
    return sorted(both, key=growth, reverse=True)


def growth(pair: Pair) -> float:
    """The time now over the time before."""
    before, now = pair
    return now.total_ms.median / max(before.total_ms.median, 1e-12)


def summary(before: Profile, now: Profile) -> str:
    """How many cases got slower or faster by more than rounds differ."""
    both = pairs(before, now)
    slower = sum(now.total_ms.low > old.total_ms.high for old, now in both)
    faster = sum(now.total_ms.high < old.total_ms.low for old, now in both)
    told = f"Of {len(both)} cases in both, {slower} got slower and {faster} faster by more than their quartiles"
    return (
        f"{told}; {len(now.measurements) - len(both)} are new and {len(before.measurements) - len(both)} are gone."
    )


def rows(before: Profile, now: Profile) -> list[list[str]]:
    """A row for each case of both."""
    return [row(pair, strict(now)) for pair in pairs(before, now)]


def row(pair: Pair, ordered: bool) -> list[str]:
    """One case before and now, beside its fastest peer and its limit."""
    before, now = pair
    peer = best(now)
    beside = (figures.NONE, figures.NONE) if peer is None else (peer.peer, figures.share(peer.ratio))
    times = figures.time(before.total_ms), figures.time(now.total_ms), f"{growth(pair):.2f}"
    return [now.id, *times, *beside, figures.near(now), why(now, ordered) if over(now) > SLOW else ""]
