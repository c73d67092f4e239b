"""Measured numbers in words: three digits, the unit that suits them, the spread beside the median."""

from __future__ import annotations

from kvspec.records.profile import Measurement, Profile, Spread

NONE = "–"


def digits(value: float) -> str:
    """Three significant digits, never as a power of ten below a million."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.995 else f"{value:.3g}"


def duration(ms: float) -> str:
    """Milliseconds in the unit that suits them."""
    for unit, factor in (("s", 1e-3), ("ms", 1.0), ("µs", 1e3)):
        if ms * factor >= 1 or unit == "µs":
            return f"{digits(ms * factor)} {unit}"
    raise AssertionError("the last unit takes everything")


def time(found: Spread | None) -> str:
    """The median of a time."""
    return NONE if found is None else duration(found.median)


def rate(found: Spread | None) -> str:
    """The median of a rate in GB/s."""
    return NONE if found is None else f"{digits(found.median)} GB/s"


def share(found: Spread | None) -> str:
    """The median of a ratio."""
    return NONE if found is None else f"{found.median:.2f}"


def between(found: Spread | None, unit: str = "") -> str:
    """The quartiles."""
    return NONE if found is None else f"{digits(found.low)} to {digits(found.high)}{unit}"


def nbytes(found: Measurement) -> str:
    """The bytes of its traffic."""
    return size(found.bytes_read + found.bytes_written)


def size(count: float) -> str:
    """Bytes, in the unit that suits them."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits:
            return f"{digits(count / (1 << bits))} {unit}"
    return f"{count:,.0f} B"


def counted(found: Measurement, name: str) -> str:
    """What the meter counted of something, for one operation."""
    if found.metered is None or name not in found.metered:
        return NONE
    value = found.metered[name]
    return size(value) if name.endswith(("host", "device")) else f"{value:,.4g}"


def shape(found: Measurement) -> str:
    """The case in words, without its operation."""
    words = [found.model, found.dtype.replace("-", " to "), f"{found.context:,} rows"]
    words += [f"{found.rows:,} at once"] if found.rows != 1 else []
    words += [f"batch {found.batch}"] if found.batch != 1 else []
    layout, pairing, page, splits = (
        found.config.get(name) for name in ("layout", "pairing", "page_size", "splits")
    )
    words += [f"{layout}-major"] if isinstance(layout, str) else []
    words += [f"{pairing} pairs"] if isinstance(pairing, str) else []
    words += [f"pages of {page}"] if type(page) is int else []
    return ", ".join([*words, f"{splits} splits"] if type(splits) is int and splits > 1 else words)


def by_operation(record: Profile) -> dict[str, list[Measurement]]:
    """The measurements of each operation, operations in the order in which they first come."""
    found: dict[str, list[Measurement]] = {}
    for each in record.measurements:
        found.setdefault(each.operation, []).append(each)
    return found


def names(record: Profile) -> list[str]:
    """The peers that took part, in the record's order."""
    return [peer.name for peer in record.peers if not peer.missing]


def ratio(found: Measurement, peer: str) -> Spread | None:
    """The adapter's time over a peer's."""
    return next((p.ratio for p in found.peers if p.peer == peer), None)
