"""Masks in the list model: what each part of a logical mask adds to the score of a key for a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kvref.list_model.rows import Added
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Part, Window
from kvspec.refusals import common

HIDDEN = float("-inf")


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
    logical: Logical, sizes: tuple[int, int, int], tokens: Sequence[int], visible: Callable[[int], range] | None
) -> list[list[list[Added]]]:
    """For these numbers of sequences, heads and newest queries: what each sees of the tokens at positions 0, 1, ...
    One head stands for all if the mask has no arrays. `visible`: the positions that the cache itself shows to a
    position."""
    (batch, heads, n), end = sizes, len(tokens)
    positions = [(p, range(visible(p).start if visible else 0, end)) for p in range(end - n, end)]
    if not explicit(logical):
        seen = [_without_arrays(logical, keys, p) for p, keys in positions]
        return [[[dict.fromkeys(tokens[s.start : s.stop], ()) for s in seen]]] * batch
    return [
        [[_through(logical, (b, h, i), *p, tokens) for i, p in enumerate(positions)] for h in range(heads)]
        for b in range(batch)
    ]


def _through(
    logical: Logical, place: tuple[int, int, int], position: int, keys: range, tokens: Sequence[int]
) -> Added:
    told = [isinstance(part, Explicit) and part.array.dtype != bool for part in logical]
    added = zip(*(_added(part, place, position, keys) for part in logical), strict=True)
    return {
        tokens[key]: [x for x, is_told in zip(scores, told, strict=True) if is_told]
        for key, scores in zip(keys, added, strict=True)
        if HIDDEN not in scores
    }


def _without_arrays(logical: Logical, keys: range, position: int) -> range:
    """Which of a range of key positions a query at a position sees through a mask that has no arrays."""
    first, end = keys.start, keys.stop
    for part in logical:
        if isinstance(part, Causal):
            end = min(end, position + 1)
        elif isinstance(part, Window):
            first = max(first, position - part.size + 1)
    return range(first, end)


def _added(part: Part, place: tuple[int, int, int], position: int, keys: range) -> list[float]:
    """What a part adds to the score of each of these keys, for the sequence, head and query at `place`; 0 lets a
    key pass. The last column of an array is for the last key."""
    if isinstance(part, Causal):
        return [0.0 if key <= position else HIDDEN for key in keys]
    if isinstance(part, Window):
        return [0.0 if position - key < part.size else HIDDEN for key in keys]
    (batch, heads, _, columns), (sequence, head, query) = part.array.shape, place
    cells: list[float] = part.array[min(sequence, batch - 1), min(head, heads - 1), query].tolist()
    if part.array.dtype == bool:
        cells = [0.0 if cell else HIDDEN for cell in cells]
    if columns == 1:
        return cells * len(keys)
    return [HIDDEN] * (len(keys) - columns) + cells[max(0, columns - len(keys)) :]
