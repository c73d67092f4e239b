"""Numbers in words: three digits, and the unit that suits them."""

from __future__ import annotations

from datetime import datetime


def digits(value: float) -> str:
    """Three significant digits, never as a power of ten below a million."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.995 else f"{value:.3g}"


def duration(ms: float) -> str:
    """Milliseconds as s, ms or µs."""
    for unit, factor in (("s", 1e-3), ("ms", 1.0)):
        if ms * factor >= 1:
            return f"{digits(ms * factor)} {unit}"
    return f"{digits(ms * 1e3)} µs"


def size(count: float) -> str:
    """Bytes as GiB, MiB, KiB or B."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits:
            return f"{digits(count / (1 << bits))} {unit}"
    return f"{count:,.0f} B"


def seconds(count: float) -> str:
    """How long a run took."""
    return f"{count:.1f} s" if count < 60 else f"{int(count) // 60} min {int(count) % 60} s"


def when(started: str) -> str:
    """Date and time without fractions; the text itself where it is no time."""
    try:
        at = datetime.fromisoformat(started)
    except ValueError:
        return started
    zone = {"UTC+00:00": "UTC", "UTC": "UTC"}.get(str(at.tzname()), at.tzname() or "")
    return f"{at:%Y-%m-%d %H:%M} {zone}".strip()
