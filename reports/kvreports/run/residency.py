"""What operations cost on a device, as a table."""

from __future__ import annotations

from kvspec.contract import METERED
from kvspec.records.run import Record, Residency

HEAD = ("cache", "operation", "when", "steps", *(name.replace("_", " ") for name in METERED))
"""The columns of the table."""

EACH_TOKEN = ("append", "step")
"""Operations that a decode does for every token."""

PAID = ("launches", "allocations", "synchronisations", "host_to_device", "device_to_host")
"""What is counted of them in the summary."""

STEADY = ("resident, within the capacity", "resident, one row", "resident")
"""The conditions under which a decode goes on: rows that are on the device, and room for them."""


def rows(record: Record) -> list[list[str]]:
    """A row for each operation and condition; a count is the smallest and the largest there was."""
    return [_row(each) for each in record.residency]


def token(record: Record) -> list[str]:
    """What is paid for every token of a steady decode: a line for each operation that writes rows."""
    steady = (each for each in record.residency if each.op in EACH_TOKEN and each.when in STEADY)
    return [f"{each.kind} {each.op}: {_paid(each)}" for each in steady]


def _paid(spent: Residency) -> str:
    counts = dict(zip(METERED, _row(spent)[4:], strict=True))
    return ", ".join(f"{name.replace('_', ' ')} {counts[name]}" for name in PAID)


def _row(spent: Residency) -> list[str]:
    counts = [_between(spent.least.get(name, 0), spent.most.get(name, 0)) for name in METERED]
    return [spent.kind, spent.op, spent.when, f"{spent.steps:,}", *counts]


def _between(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
