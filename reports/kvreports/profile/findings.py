"""What a profile found, in sentences: which cases are slow, beside which peer, and why."""

from __future__ import annotations

from kvreports.profile import figures
from kvspec.records.profile import Measurement, PeerTime, Profile

SLOW = 1.5
"""A case is slow if it takes more than this many times the time of its fastest peer."""

MOST = 6
"""Operations that are named."""

LESS_WORK = {"memcpy"}
"""Peers that do less than the operation: no case counts as slow beside them."""

OWN = 0.6
"""If the call itself takes this share of the time or more, it is the reason."""

NEAR = 0.7
"""At this share of a limit or more, nothing is left to gain on the device."""


def best(case: Measurement) -> PeerTime | None:
    """The fastest peer that does the same work."""
    same = [peer for peer in case.peers if peer.peer not in LESS_WORK]
    return max(same, key=lambda peer: peer.ratio.median, default=None)


def over(case: Measurement) -> float:
    """The time over that of the fastest peer; 0 without one."""
    peer = best(case)
    return 0.0 if peer is None else peer.ratio.median


def sentences(record: Profile) -> list[str]:
    """How many cases are slow; then for each operation its slowest case, the slowest operations first."""
    compared = [case for case in record.measurements if best(case) is not None]
    if not compared:
        return ["No case has a peer to compare with."]
    slow = [case for case in compared if over(case) > SLOW]
    found = [f"{len(slow)} of {len(compared)} cases take more than {SLOW:g} times the time of the fastest peer."]
    worst = {name: max(cases, key=over) for name, cases in figures.by_operation(record).items()}
    named = sorted((case for case in worst.values() if over(case) > SLOW), key=over, reverse=True)
    found += [sentence(case) for case in named[:MOST]]
    return found


def sentence(case: Measurement) -> str:
    """One slow case: how slow, beside which peer, and why."""
    peer = best(case)
    assert peer is not None
    return (
        f"{case.operation} ({figures.shape(case)}): {peer.ratio.median:.2g} times {peer.peer}'s time; {why(case)}."
    )


def why(case: Measurement) -> str:
    """The likeliest reason, from what was counted and timed."""
    counts = case.metered or {}
    if case.host_ms.median > OWN * case.total_ms.median and not counts.get("device_to_host"):
        return f"the call alone takes {figures.time(case.host_ms)} of {figures.time(case.total_ms)}"
    if counts.get("device_to_host"):
        return f"{figures.count(case, 'device_to_host')} cross to the host"
    if case.fraction is not None and case.fraction.median < NEAR:
        return f"its kernels reach {figures.share(case.fraction)} of the {case.limit} limit"
    if counts.get("allocations"):
        return "it allocates memory in each operation"
    return "its kernels take the time" if case.fraction is None else "the device is near its limit"
