"""What a run found beside verdicts, as tables: what operations cost on a device, and what claims shut out."""

from __future__ import annotations

from kvspec.contract import METERED
from kvspec.records.run import Record, Residency

COSTS = ("cache", "operation", "when", "steps", *(name.replace("_", " ") for name in METERED))
"""The columns of the table of costs."""

EACH_TOKEN = ("append", "step")
"""Operations that a decode repeats for every token."""

COUNTS = ("launches", "allocations", "synchronisations", "host_to_device", "device_to_host")
"""The counts that the summary shows."""

STEADY = ("resident, within the capacity", "resident, one row", "resident")
"""The conditions of a steady decode: the rows are on the device, and there is room for them."""


def costs(record: Record) -> list[list[str]]:
    """A row for each operation and condition; each count is given as the smallest and the largest."""
    return [_row(cost) for cost in record.residency]


def token(record: Record) -> list[str]:
    """The cost of one token in a steady decode: a line for each operation that writes rows."""
    steady = (cost for cost in record.residency if cost.op in EACH_TOKEN and cost.when in STEADY)
    return [f"{cost.kind} {cost.op}: {_counts(cost)}" for cost in steady]


def _counts(cost: Residency) -> str:
    counts = dict(zip(METERED, _row(cost)[4:], strict=True))
    return ", ".join(f"{name.replace('_', ' ')} {counts[name]}" for name in COUNTS)


def _row(cost: Residency) -> list[str]:
    counts = [_range(cost.least.get(name, 0), cost.most.get(name, 0)) for name in METERED]
    return [cost.kind, cost.op, cost.when, f"{cost.steps:,}", *counts]


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


SHUT_OUT = ("not judged, because it", "checks")
"""The columns of the table of what an adapter's claims shut out."""

SHOWN = 6
"""Checks that are named of each reason; the record has all."""


def shut_out(record: Record, most: int = SHOWN) -> list[tuple[str, str]]:
    """Each reason once, with the checks that it left nothing to judge; those with the most checks first."""
    checks: dict[str, list[str]] = {}
    for check, why in record.shut_out.items():
        checks.setdefault(why, []).append(check)
    ranked = sorted(checks.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [(why, _named(each, most)) for why, each in ranked]


def _named(checks: list[str], most: int) -> str:
    more = f" and {len(checks) - most} more" if len(checks) > most else ""
    return ", ".join(checks[:most]) + more
