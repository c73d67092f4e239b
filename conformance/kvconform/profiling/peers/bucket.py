"""Rows of all layers padded to a bound, as compiled graphs need them: attention reads all, through a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvconform.profiling.operation import Job
from kvconform.profiling.peers.host_arrays import Rows
from kvconform.profiling.workloads.bucket import STEPS


def _layers(rows: Rows, slots: int, most: int = 256, kind: int = 0) -> list[tuple[Any, Any]]:
    """Make keys and values `[layers * batch, kv_heads, slots, dim]` in rotation."""
    case, model = rows.case, rows.case.model
    return rows.pairs((model.layers * case.batch, model.kv_heads, slots), most, kind=kind)


def _queries(rows: Rows) -> Any:
    return rows.queries(rows.case.model.layers)


def decode(rows: Rows) -> Job:
    """Write a row of each layer at its position, then attend over the bound."""
    case, asked = rows.case, _queries(rows)
    handles, sources = _layers(rows, case.context), _layers(rows, 1, 64, 1)

    def do(i: int) -> Any:
        handle, past = handles[i % len(handles)], case.context - STEPS + i // len(handles) % STEPS
        rows.write(handle, 2, past, sources[i % len(sources)])
        return rows.library.attend(asked, *handle, seen=past + 1)

    return Job(do)


def block(rows: Rows) -> Job:
    """Write rows of each layer behind the bound, then attend causally over the bound and these rows."""
    case, asked = rows.case, _queries(rows)
    handles, sources = _layers(rows, case.context + case.rows), _layers(rows, case.rows, 64, 1)

    def do(i: int) -> Any:
        handle = handles[i % len(handles)]
        rows.write(handle, 2, case.context, sources[i % len(sources)])
        return rows.library.attend(asked, *handle)

    return Job(do)


def cross_over(rows: Rows) -> Job:
    """Join all rows with the padding of the next bound."""
    context, handles = rows.case.context, _layers(rows, rows.case.context + 1)
    padding = _layers(rows, context - 1, 1, 1)[0]
    return Job(
        lambda i: [rows.library.cat(pair, 2) for pair in zip(handles[i % len(handles)], padding, strict=True)]
    )


def copied(rows: Rows) -> Job:
    """Copy into new memory."""
    handles = _layers(rows, rows.case.context)
    return Job(lambda i: [rows.library.copy(a) for a in handles[i % len(handles)]])


def cross(rows: Rows) -> Job:
    """Attend over an encoder's rows."""
    asked, encoded = _queries(rows), _layers(rows, rows.case.context)
    return Job(lambda i: rows.library.attend(asked, *encoded[i % len(encoded)]))


WORK: dict[str, Callable[[Rows], Job]] = {
    "bucket decode": decode,
    "bucket block": block,
    "bucket crossing": cross_over,
    "bucket sync": copied,
    "encode": copied,
    "cross attention": cross,
}
"""The work of each operation."""
