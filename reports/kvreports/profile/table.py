"""A profile in rows: what every form of it shows."""

from __future__ import annotations

from itertools import groupby

from kvreports.profile import figures
from kvreports.safe_text import line
from kvreports.units import digits
from kvspec.records.profile import Measurement, Profile, SkippedCase

HEAD = (
    *("operation", "shape", "bytes", "device", "host", "rate", "of limit", "quartiles"),
    *("launches", "allocations", "to device", "to host"),
)
"""The columns before those of the peers."""
READING = "Times are medians, and so is what follows a slash: the time over that peer's. Lower is better in both."
"""How to read it, in a line."""
LIMITS = ("limit", "GB/s", "quartiles", "rounds")
"""The columns of the limits."""


def name(record: Profile) -> str:
    """The adapter's name; without one, how the command named it."""
    text = record.adapter.get("name")
    return text if isinstance(text, str) and text else " ".join(record.command) or "unnamed adapter"


def headline(record: Profile) -> str:
    """Which adapter was measured, where, and how."""
    device = record.adapter.get("device") or "an unnamed device"
    clock = record.clock or "the adapter offers no clock, so times are the host's and there are no limits"
    return f"{line(name(record))} on {line(str(device))}; device time: {line(clock)}"


def limits(record: Profile) -> list[list[str]]:
    """A row for each limit."""
    return [
        [limit.name, digits(limit.rate.median), figures.quartiles(limit.rate), f"{limit.rounds:,}"]
        for limit in record.limits
    ]


def rows(record: Profile) -> list[list[str]]:
    """A row for each measurement."""
    return [row(case, figures.peers(record)) for case in record.measurements]


def row(case: Measurement, peers: list[str]) -> list[str]:
    """One measurement; a peer's column is the adapter's time over the peer's."""
    return [
        case.operation,
        figures.shape(case),
        figures.traffic(case),
        figures.time(case.device_ms),
        figures.time(case.host_ms),
        figures.rate(case.rate),
        figures.near(case),
        figures.quartiles(case.fraction),
        *(figures.count(case, name) for name in ("launches", "allocations", "host_to_device", "device_to_host")),
        *(figures.share(figures.ratio(case, peer)) for peer in peers),
    ]


def skipped(cases: list[SkippedCase]) -> list[tuple[str, list[str]]]:
    """The ids of the cases that were not measured, by the reason."""
    ordered = sorted(cases, key=lambda case: case.reason)
    return [(reason, [case.id for case in group]) for reason, group in groupby(ordered, lambda case: case.reason)]
