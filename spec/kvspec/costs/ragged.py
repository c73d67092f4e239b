"""Cost bounds of the operations on a ragged cache."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, ENTRY, PADDING, Case, Cost, bounded, how
from kvspec.geometry import DTYPES
from kvspec.operations.table import numbers_in

FLOAT = DTYPES["f32"].itemsize


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


def attendblock(case: Case) -> Cost:
    """Attend to a block: a feed, and each sequence asks by itself."""
    (fed,) = feed(case).bounds
    queries, asks = case.got.arrays.get("output"), sum(n > 0 for n in numbers_in(case.op["lengths"]))
    columns = 0 if queries is None else queries.size // max(1, case.config.v_dim)
    asked = {
        "host_to_device": columns * case.config.k_dim * FLOAT + asks * PADDING,
        "device_to_host": case.returned("output"),
        "launches": 2 * asks,
        "allocations": 3,
        "synchronisations": 2 * asks + 1,
    }
    most = {name: fed.most.get(name, 0) + asked.get(name, 0) for name in (*fed.most, *asked)}
    return bounded("RAGGED-39", how(case), **most)


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
