"""A profile for a terminal and as Markdown: the limits, a table of all measurements, and what was left out."""

from __future__ import annotations

from tabulate import tabulate

from kvreports.profile import figures
from kvreports.run.markdown import literal
from kvreports.safe_text import cleaned, line, shortened
from kvspec.records.profile import Measurement, Profile

HEAD = (
    *("operation", "shape", "bytes", "device", "host", "rate", "of limit", "quartiles"),
    *("launches", "allocations", "to device", "to host"),
)
"""The columns before those of the peers."""

NEVER_JUDGED = "A profile measures; it passes and fails nothing."


def render(record: Profile) -> str:
    """For a terminal: a table for each operation."""
    record = cleaned(record)
    parts = [headline(record), *(["PARTIAL: " + line(record.partial_reason)] if record.partial else [])]
    parts.append(tabulate(limits(record), ("limit", "GB/s", "quartiles", "rounds"), disable_numparse=True))
    head = [*HEAD, *(f"/ {line(name)}" for name in figures.names(record))]
    parts.append(tabulate(rows(record), head, disable_numparse=True) if record.measurements else "nothing measured")
    parts += [f"not measured: {line(s.id)}: {line(shortened(s.reason, 200))}" for s in record.skipped]
    parts += [f"no peer: {line(p.name)}: {line(p.missing)}" for p in record.peers if p.missing]
    return "\n\n".join(parts) + "\n"


def markdown(record: Profile) -> str:
    """As Markdown; nothing in the record is trusted with it."""
    record = cleaned(record)
    parts = [f"# Profile: {literal(name(record))}", literal(headline(record), 400), NEVER_JUDGED]
    parts += [f"> **Partial.** {literal(record.partial_reason)}"] if record.partial else []
    parts.append(_table(limits(record), ["limit", "GB/s", "quartiles", "rounds"]))
    head = [*HEAD, *(f"/ {literal(n)}" for n in figures.names(record))]
    for operation, found in figures.by_operation(record).items():
        parts += [f"## {literal(operation)}", _table([row(m, figures.names(record))[1:] for m in found], head[1:])]
    parts += [f"- Not measured: {literal(s.id)}: {literal(s.reason, 200)}" for s in record.skipped]
    parts += [f"- No peer: {literal(p.name)}: {literal(p.missing, 200)}" for p in record.peers if p.missing]
    return "\n\n".join(parts) + "\n"


def _table(lines: list[list[str]], head: list[str]) -> str:
    cells = [[literal(cell, 80) for cell in cells] for cells in lines]
    return tabulate(cells, head, tablefmt="github", disable_numparse=True)


def name(record: Profile) -> str:
    """The adapter's name; how it was asked for where it gave none."""
    said = record.adapter.get("name")
    return said if isinstance(said, str) and said else " ".join(record.command) or "unnamed adapter"


def headline(record: Profile) -> str:
    """Who was measured, where, and how."""
    device = record.adapter.get("device")
    clock = record.clock or "the adapter offers no clock: times are the host's, and there are no limits"
    return f"{line(name(record))} on {line(str(device or 'a device it does not name'))}; device time: {line(clock)}"


def limits(record: Profile) -> list[list[str]]:
    """A row for each limit."""
    return [
        [each.name, figures.digits(each.rate.median), figures.between(each.rate), f"{each.rounds:,}"]
        for each in record.limits
    ]


def rows(record: Profile) -> list[list[str]]:
    """A row for each measurement."""
    return [row(found, figures.names(record)) for found in record.measurements]


def row(found: Measurement, peers: list[str]) -> list[str]:
    """One measurement; a peer's column is the adapter's time over the peer's."""
    limit = f" {found.limit}" if found.limit else ""
    return [
        found.operation,
        figures.shape(found),
        figures.nbytes(found),
        figures.time(found.device_ms),
        figures.time(found.host_ms),
        figures.rate(found.rate),
        figures.share(found.fraction) + limit,
        figures.between(found.fraction),
        *(figures.counted(found, n) for n in ("launches", "allocations", "host_to_device", "device_to_host")),
        *(figures.share(figures.ratio(found, peer)) for peer in peers),
    ]
