"""The sources that an adapter's claims shut out, by what is missing."""

from __future__ import annotations

from kvspec.records.run import Record

HEAD = ("not judged, because it", "checks")

SHOWN = 6
"""Checks that are named of each reason; the record has all."""


def rows(record: Record, most: int = SHOWN) -> list[tuple[str, str]]:
    """Each reason once, with the checks that it left nothing to judge; those with the most checks first."""
    checks: dict[str, list[str]] = {}
    for check, why in record.shut_out.items():
        checks.setdefault(why, []).append(check)
    ranked = sorted(checks.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [(why, _named(each, most)) for why, each in ranked]


def _named(checks: list[str], most: int) -> str:
    more = f" and {len(checks) - most} more" if len(checks) > most else ""
    return ", ".join(checks[:most]) + more
