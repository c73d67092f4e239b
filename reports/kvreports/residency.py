"""What operations cost on a device, as a table."""

from __future__ import annotations

from kvspec.contract import METERED
from kvspec.record import Record, Residency

HEAD = ("cache", "operation", "when", "steps", *(name.replace("_", " ") for name in METERED))
"""The columns of the table."""


EACH_TOKEN = ("append", "copy", "draft", "step", "replay")
"""Operations that write rows: what they cost is paid for every token."""


def rows(record: Record) -> list[list[str]]:
    """A row for each operation and condition; a count is the smallest and the largest there was."""
    return [_row(each) for each in record.get("residency", [])]


def sentences(record: Record) -> list[str]:
    """What is paid for every token, in words: the counts that were not 0 throughout."""
    return [_sentence(each) for each in record.get("residency", []) if each["op"] in EACH_TOKEN]


def _sentence(spent: Residency) -> str:
    counts = zip(METERED, _row(spent)[4:], strict=True)
    told = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts if count != "0")
    when = f" ({spent['when']})" if spent["when"] else ""
    return f"{spent['kind']} {spent['op']}{when}: {told or 'nothing'}"


def _row(spent: Residency) -> list[str]:
    counts = [_between(spent["least"].get(name, 0), spent["most"].get(name, 0)) for name in METERED]
    return [spent["kind"], spent["op"], spent["when"], f"{spent['steps']:,}", *counts]


def _between(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
