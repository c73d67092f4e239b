"""What was measured, in words."""

from __future__ import annotations

from kvreports.units import digits, duration, size
from kvspec.records.profile import Measurement, Profile, Spread

NONE = "–"


def machine(record: Profile) -> str:
    """The processor that a profile is about."""
    if "GPU" in record.machine:
        return str(record.adapter["device"])
    return f"{record.machine.get('cpu') or 'unknown'}, {record.machine.get('cores') or '?'} cores"


def time(spread: Spread | None) -> str:
    """The median of a time."""
    return NONE if spread is None else duration(spread.median)


def rate(spread: Spread | None) -> str:
    """The median of a rate in GB/s."""
    return NONE if spread is None else f"{digits(spread.median)} GB/s"


def share(spread: Spread | None) -> str:
    """The median of a ratio."""
    return NONE if spread is None else f"{spread.median:.2f}"


def near(case: Measurement) -> str:
    """How close a case came to its limit, which limit, and whether a cache held a part of its rows."""
    found = share(case.fraction) + (f" {case.limit}" if case.limit else "")
    if not case.get("in_cache"):
        return found
    return "in cache" if case.fraction is None else f"{found} in cache"


def modes(case: Measurement) -> str:
    """Both times of a case whose rounds fall into two groups, and how many rounds took each; else nothing."""
    found = case.get("modes")
    return " or ".join(f"{duration(mode.ms)} ({mode.rounds} of {case.rounds})" for mode in found) if found else ""


def quartiles(spread: Spread | None) -> str:
    """The quartiles."""
    return NONE if spread is None else f"{digits(spread.low)} to {digits(spread.high)}"


def traffic(case: Measurement) -> str:
    """The bytes that the operation reads and writes."""
    return size(case.bytes_read + case.bytes_written)


def count(case: Measurement, name: str) -> str:
    """A count of the adapter's meter, for one operation."""
    if case.metered is None or name not in case.metered:
        return NONE
    value = case.metered[name]
    return size(value) if name.endswith(("host", "device")) else f"{value:,.4g}"


def shape(case: Measurement) -> str:
    """The case in words, without its operation."""
    config = case.config
    words = [case.model, case.dtype.replace("-", " to "), f"{case.context:,} rows"]
    words += [f"{case.rows:,} at once"] if case.rows != 1 else []
    words += [f"batch {case.batch}"] if case.batch != 1 else []
    form, layout, pairing, page, splits = map(config.get, ("form", "layout", "pairing", "page_size", "splits"))
    words += [f"kept as {form}"] if isinstance(form, str) else []
    words += [f"{layout}-major"] if isinstance(layout, str) else []
    words += [f"{pairing} pairs"] if isinstance(pairing, str) else []
    words += [f"pages of {page}"] if type(page) is int else []
    words += [f"{splits} splits"] if type(splits) is int and splits > 1 else []
    return ", ".join(words)


def by_operation(record: Profile) -> dict[str, list[Measurement]]:
    """The measurements of each operation; operations in the record's order."""
    cases: dict[str, list[Measurement]] = {}
    for case in record.measurements:
        cases.setdefault(case.operation, []).append(case)
    return cases


def peers(record: Profile) -> list[str]:
    """The names of the peers that took part."""
    return [peer.name for peer in record.peers if not peer.missing]


def ratio(case: Measurement, peer: str) -> Spread | None:
    """The adapter's time over a peer's."""
    return next((p.ratio for p in case.peers if p.peer == peer), None)
