"""Attention in the list model: what each query sees, by serial, and `kvref.attended` for the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvconform.lists.cache import take
from kvconform.lists.expected import Expected
from kvref import attended
from kvref.cite import cite
from kvref.history import History, Seen
from kvspec import masks
from kvspec.geometry import Config
from kvspec.operations import Operation
from kvspec.session import Given


def expect(
    lists: Any, step: Expected, config: Config, given: Given, sees: Sequence[Sequence[Sequence[Seen]]]
) -> None:
    """The outputs of queries that see so much, `[B][heads or 1][L]`; nothing where no queries were made."""
    if given.queries is not None:
        kept = lists.supplies.book.kept
        step.outputs = attended.outputs(given.queries, sees, kept, config.dtype, config.v_dim)


def attend(lists: Any, cache: History, op: Operation, step: Expected, given: Given) -> None:
    """Append, then what each query sees through the mask, beside what the cache itself hides."""
    take(lists, cache, op)
    logical = masks.CAUSAL if given.logical is None else given.logical
    heads = 1 if given.queries is None else given.queries.shape[1]
    sees = [[cache.sees(logical, b, h) for h in range(heads)] for b in range(cache.config.batch)]
    cite("ATTN-1")
    expect(lists, step, cache.config, given, sees)


DO: dict[str, Any] = {"attend": attend}
