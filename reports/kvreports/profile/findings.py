"""What a profile found: which cases are slow, beside which peer, and why."""

from __future__ import annotations

from collections.abc import Iterable

from kvreports.profile import figures
from kvspec.records.profile import Measurement, PeerTime, Profile

SLOW = 1.5
"""A case is slow if it takes more than this many times the time of its fastest peer."""

MOST = 6
"""Operations that are named."""

MOST_MODES = 4
"""Cases of two modes that are named."""

LESS_WORK = {"memcpy"}
"""Peers that do less than the operation: no case counts as slow beside them."""

OWN = 0.6
"""If the call itself takes this share of the time or more, it is the reason."""

HEAD = ("slow case", "device", "host", "fastest peer", "/ fastest peer", "of limit", "why")
"""The columns of `rows`."""

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
    """Say how many cases are slow, and on which machine, because ratios differ from one to the next. Then give the
    slowest case of each operation, the slowest operations first."""
    compared = [case for case in record.measurements if best(case) is not None]
    if not compared:
        return ["No case has a peer to compare with.", *two_modes(record)]
    found, where = f"{len(slow(record))} of {len(compared)} cases", f"on this machine ({figures.machine(record)})"
    told = [f"{found} take more than {SLOW:g} times the time of the fastest peer {where}."]
    worst = {name: max(cases, key=over) for name, cases in figures.by_operation(record).items()}
    told += [sentence(case, strict(record)) for case in _slowest(worst.values())[:MOST]]
    return told + two_modes(record)


def two_modes(record: Profile) -> list[str]:
    """Say which cases have times of two groups, those first that are furthest apart: their medians say little."""
    apart = sorted(filter(figures.modes, record.measurements), key=_apart, reverse=True)
    named = [f"{case.operation} ({figures.shape(case)}), {figures.modes(case)}" for case in apart[:MOST_MODES]]
    if not named:
        return []
    head = "1 case has" if len(apart) == 1 else f"{len(apart)} cases have"
    beyond = f"; and {len(apart) - len(named)} more" if len(apart) > len(named) else ""
    return [f"{head} times of two groups, so the median says little: {'; '.join(named)}{beyond}."]


def _apart(case: Measurement) -> float:
    fast, slow = case.get("modes")
    return float(slow.ms / max(fast.ms, 1e-12))


def slow(record: Profile) -> list[Measurement]:
    """The slow cases, the slowest first."""
    return _slowest(record.measurements)


def _slowest(cases: Iterable[Measurement]) -> list[Measurement]:
    return sorted((case for case in cases if over(case) > SLOW), key=over, reverse=True)


def rows(record: Profile) -> list[list[str]]:
    """A row for each slow case."""
    return [row(case, strict(record)) for case in slow(record)]


def row(case: Measurement, ordered: bool) -> list[str]:
    """One slow case: its times, its fastest peer, and why."""
    peer = best(case)
    assert peer is not None
    times = figures.time(case.device_ms), figures.time(case.host_ms)
    return [case.id, *times, peer.peer, figures.share(peer.ratio), figures.near(case), why(case, ordered)]


def strict(record: Profile) -> bool:
    """Whether the adapter's attention is to the bit, so that its kernels sum in the order that the spec gives."""
    chapters = record.adapter.get("chapters")
    attention = chapters.get("attention") if isinstance(chapters, dict) else None
    return isinstance(attention, dict) and attention.get("level") == "storage"


def sentence(case: Measurement, ordered: bool) -> str:
    """One slow case: how slow, beside which peer, and why."""
    peer = best(case)
    assert peer is not None
    ratio = peer.ratio.median
    slower = f"{f'{ratio:,.0f}' if ratio >= 100 else f'{ratio:.2g}'} times {peer.peer}'s time"
    return f"{case.operation} ({figures.shape(case)}): {slower}; {why(case, ordered)}."


def why(case: Measurement, ordered: bool = False) -> str:
    """The likeliest reason, from what was counted and timed."""
    counts, peer = case.metered or {}, best(case)
    by_host = peer is None or peer.on_device is not True  # a ratio of device times has nothing of the host's
    if by_host and case.host_ms.median > OWN * case.total_ms.median and not counts.get("device_to_host"):
        return (
            f"the call alone takes {figures.time(case.host_ms)} of {figures.time(case.total_ms)}{_launching(case)}"
        )
    if counts.get("device_to_host"):
        rate = "" if case.rate is None else f" at {figures.rate(case.rate)}"
        return f"{figures.count(case, 'device_to_host')} cross to the host{rate}"
    if case.fraction is not None and case.fraction.median < NEAR:
        order = ", which sum in strict order," if ordered and case.flops else ""
        return f"its kernels{order} reach {figures.share(case.fraction)} of the {case.limit} limit"
    if counts.get("allocations"):
        return "it allocates memory in each operation"
    return "its kernels take the time" if case.fraction is None else "the device is near its limit"


def _launching(case: Measurement) -> str:
    """How many launches a call makes, if anybody counted."""
    count = (case.metered or {}).get("launches") or 0
    if count % 1:
        return f", to launch {count:,.1f} kernels on average"
    return f", to launch {count:,.0f} kernel{'s' if count != 1 else ''}" if count else ""
