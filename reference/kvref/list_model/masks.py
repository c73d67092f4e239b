"""Masks in the list model: what each part of a logical mask adds to the score of a key for a query."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kvref.list_model.rows import Added
from kvref.list_model.views import Full, View
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Window
from kvspec.refusals import common

HIDDEN = float("-inf")

ALL = Full()


def explicit(logical: Logical) -> list[Explicit]:
    """The parts that are arrays."""
    return [part for part in logical if isinstance(part, Explicit)]


def demand(logical: Logical, batch: int, n: int, rows: int) -> list[Array]:
    """The arrays of a mask for n queries of each sequence over this many rows. Refuses what does not fit."""
    arrays = [part.array for part in explicit(logical)]
    for a in arrays:
        if a.ndim != 4 or a.shape[0] not in (1, batch) or a.shape[2] != n or a.dtype not in (np.bool_, np.float32):
            raise common.mask_shape("MASK-13", a, batch, n)
        if a.shape[3] not in (1, rows):
            raise common.mask_width("MASK-12", a.shape[3], rows)
    heads = {a.shape[1] for a in arrays} - {1}
    if len(heads) > 1 or 0 in heads:
        raise common.mask_shape("MASK-13", arrays[0], batch, n)
    for size in (part.size for part in logical if isinstance(part, Window) and part.size <= 0):
        raise common.mask_window("MASK-13", size)
    return arrays


def sees(
    logical: Logical,
    sizes: tuple[int, int, int],
    tokens: Sequence[int],
    view: View = ALL,
    place: Callable[[int], int] | None = None,
) -> list[list[list[Added]]]:
    """For these numbers of sequences, heads and newest queries: what each sees of the tokens at positions 0, 1, ...
    One head stands for all if the mask has no arrays. `place`: the position that windows of the mask count with, of
    the row at a position, where they are not the same."""
    (batch, heads, n), end = sizes, len(tokens)
    queries = range(end - n, end)
    shown = [without_arrays(logical, view.sees(p, end), p, place) for p in queries]
    arrays = explicit(logical)
    if not arrays:
        return [[[{tokens[p]: () for p in seen} for seen in shown]]] * batch
    history = [*view.needs(end - n), *queries]
    return [
        [[through(arrays, (b, h, i), keys, history, tokens) for i, keys in enumerate(shown)] for h in range(heads)]
        for b in range(batch)
    ]


def without_arrays(
    logical: Logical, keys: Sequence[int], query: int, place: Callable[[int], int] | None = None
) -> Sequence[int]:
    """Which of these rows, oldest first, the query at a position sees through the parts that are not arrays."""
    for part in logical:
        if isinstance(part, Causal):
            keys = keys[: bisect_right(keys, query)]
        elif isinstance(part, Window):
            first = (place(query) if place else query) - part.size + 1
            keys = keys[bisect_left(keys, first, key=place) :]
    return keys


def through(
    arrays: Sequence[Explicit],
    at: tuple[int, int, int],
    keys: Sequence[int],
    history: Sequence[int],
    tokens: Sequence[int],
) -> Added:
    """What arrays add to the score of each of these rows, for the sequence, head and query at `at`."""
    told = [part.array.dtype != bool for part in arrays]
    columns = [_column(part.array, at, history) for part in arrays]
    added = ((key, [column[key] for column in columns]) for key in keys)
    return {
        tokens[key]: [x for x, is_told in zip(scores, told, strict=True) if is_told]
        for key, scores in added
        if HIDDEN not in scores
    }


def _column(array: Array, at: tuple[int, int, int], history: Sequence[int]) -> Mapping[int, float]:
    """What an array adds to the score of each row of a history; 0 lets it pass. The last column is for the
    newest."""
    (batch, heads, _, columns), (sequence, head, query) = array.shape, at
    cells: list[float] = array[min(sequence, batch - 1), min(head, heads - 1), query].tolist()
    if array.dtype == bool:
        cells = [0.0 if cell else HIDDEN for cell in cells]
    if columns == 1:
        return dict.fromkeys(history, cells[0])
    missing = max(0, len(history) - columns)
    return dict(zip(history, [HIDDEN] * missing + cells[columns - len(history) + missing :], strict=True))
