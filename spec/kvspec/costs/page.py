"""Cost bounds of the operations on a paged cache."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, ENTRY, PADDING, Case, Cost, bounded, how, no_rows


def append(case: Case) -> Cost:
    """Append rows to a sequence: one launch, and more if pages are taken."""
    n, row, taken = case.op["n"], case.config.row_bytes, max(_freed(case, -1), case.shares)
    if n == 0:
        return no_rows(case)
    arriving = 0 if case.resident else BUFFER
    crossing = 0 if case.resident else n * row + 2 * PADDING
    copied = case.config.page_size or 1 if taken else 0  # of the shared page before, which may be copied whole
    return bounded(
        "PAGE-40",
        f"{how(case)}, {'with new pages' if taken else 'within a page'}",
        host_to_device=crossing + (ENTRY * _entries(case) if taken else 0),
        device_to_device=(n + copied) * row,
        launches=1 + 2 * taken,
        allocations=arriving,
        synchronisations=arriving + (1 if taken else 0),
    )


def bookkeeping(case: Case) -> Cost:
    """Admit, fork, truncate and drop sequences."""
    return bounded(
        "PAGE-41",
        host_to_device=ENTRY * _entries(case),
        launches=1 + (_freed(case) if case.config.debug else 0),
        allocations=1,
        synchronisations=1,
    )


def gather(case: Case) -> Cost:
    """Gather rows through a given table."""
    if case.op["n"] == 0:
        return bounded("PAGE-42", "no rows")
    return _read(case, "gathered", ENTRY * (case.op["table"].count(",") + 1))


def peek(case: Case) -> Cost:
    """Peek at one page."""
    return _read(case, "page", 0)


def _read(case: Case, what: str, entries: int) -> Cost:
    read = case.returned(what)
    return bounded(
        "PAGE-42",
        host_to_device=entries + (PADDING if entries else 0),
        device_to_host=read,
        device_to_device=read,
        launches=1,
        allocations=BUFFER + 1,
        synchronisations=BUFFER + 1,
    )


def _freed(case: Case, sign: int = 1) -> int:
    """Count the pages freed; negative for pages taken."""
    before, after = (int(layer.get("free") or 0) for layer in (case.cache.before, case.got.values))
    return max(0, sign * (after - before))


def _entries(case: Case) -> int:
    """Count the table entries of the operation's sequence afterwards, or of a new one."""
    made, named = case.got.values.get("sequence"), case.op.get("sequence") or 0
    lengths, number = case.got.values.get("sequences") or [], named if made is None else made
    rows = max(0, lengths[number]) if number < len(lengths) else 0
    return -(-rows // (case.config.page_size or 1))


admit = fork = truncate = drop = bookkeeping
