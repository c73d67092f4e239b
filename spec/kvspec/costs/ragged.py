"""Cost bounds of the operations on a ragged cache."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, ENTRY, PADDING, Case, Cost, bounded, how
from kvspec.operations.table import numbers_in


def feed(case: Case) -> Cost:
    """Feed a block: every row may move, because padding may."""
    lengths = numbers_in(case.op["lengths"])
    columns, before = max(lengths) if case.op.get("n") is None else case.op["n"], len(lengths)
    arriving = 0 if case.resident else BUFFER
    crossing = 0 if case.resident else before * columns * _row(case) + 2 * PADDING
    return bounded(
        "RAGGED-25",
        how(case),
        host_to_device=crossing + _entries(case),
        device_to_device=_rows(case) * _row(case),
        launches=2 * before + 2,
        allocations=BUFFER + arriving,
        synchronisations=1 + arriving,
    )


def trim(case: Case) -> Cost:
    """Trim, filter, reorder, repeat, extend and join: every row may move once, to a new block."""
    return _rearranged(case, _rows(case), 2 * len(case.got.values["sequences"]) + 2, BUFFER)


def extract(case: Case) -> Cost:
    """Extract the rows of a sequence: by way of a place where they lie side by side."""
    rows = 2 * _held(case)[case.op["sequence"]]
    return _rearranged(case, rows, 4, 3 * BUFFER)


def _rearranged(case: Case, rows: int, launches: int, allocations: int) -> Cost:
    return bounded(
        "RAGGED-26",
        host_to_device=_entries(case),
        device_to_device=rows * _row(case),
        launches=launches,
        allocations=allocations,
        synchronisations=1,
    )


def _row(case: Case) -> int:
    """Bytes of a row of one sequence."""
    return case.config.changed(batch=1).row_bytes


def _rows(case: Case) -> int:
    """Rows of all sequences that are kept afterwards."""
    return sum(_held(case))


def _held(case: Case) -> list[int]:
    """Rows of each sequence that are kept afterwards."""
    values = case.got.values
    return list(values["sequences"] if values.get("holds") is None else values["holds"])


def _entries(case: Case) -> int:
    """Bytes of a length and a column for each sequence afterwards."""
    return 2 * ENTRY * len(case.got.values["sequences"])


filter = reorder = repeat = extend = join = trim
