"""Masks: from a logical mask in position order to the columns of a history.

With L queries and K rows, column j is the row at position offset - K + j, and query i is at position offset - L +
i. So the last query and the last key are the same token.
"""

from __future__ import annotations

import numpy as np

from kvref.cite import cite
from kvspec.geometry import Array
from kvspec.masks import Causal, Explicit, Logical, Part, Window
from kvspec.refusals import common as refusals


def in_position_order(
    logical: Logical, batch: int, queries: int, rows: int, standing: Array | None = None
) -> Array | None:
    """`[1 or B, 1 or heads, L, K or 1]` in position order; None where nothing needs to be hidden. `standing`: the
    positions of the rows, where they do not follow on each other."""
    demand(logical, batch, queries, rows)
    standing = np.arange(rows) if standing is None else standing
    parts = [a for a in (_part(p, queries, standing) for p in logical) if a is not None]
    if not parts:
        cite(*(["MASK-3"] if not logical else []), *[c for n, c in ((0, "MASK-16"), (1, "MASK-9")) if n == queries])
        return None
    mask = parts[0]
    for other in parts[1:]:
        cite("MASK-7")
        mask = intersected(mask, other)
    return mask


def demand(logical: Logical, batch: int, queries: int, rows: int) -> None:
    """Refuse explicit arrays that do not fit the history, or each other; then windows below 1."""
    arrays = [p.array for p in logical if isinstance(p, Explicit)]
    for array in arrays:
        _check(array, batch, queries, rows)
    heads = {a.shape[1] for a in arrays} - {1}
    if len(heads) > 1 or 0 in heads:
        raise refusals.mask_shape("MASK-13", arrays[0], batch, queries)
    for part in logical:
        if isinstance(part, Window) and part.size < 1:
            raise refusals.mask_window("MASK-13", part.size)


def _check(array: Array, batch: int, queries: int, rows: int) -> None:
    """Refuse an explicit array that does not fit the history."""
    sizes = ((1, batch), None, (queries,))
    fits = array.ndim == 4 and all(s is None or n in s for n, s in zip(array.shape, sizes, strict=False))
    if not fits or array.dtype not in (np.bool_, np.float32):
        raise refusals.mask_shape("MASK-13", array, batch, queries)
    if array.shape[3] not in (1, rows):
        raise refusals.mask_width("MASK-12", array.shape[3], rows)


def _part(part: Part, queries: int, standing: Array) -> Array | None:
    column = standing[None, :]
    query = standing[len(standing) - queries :, None]
    if isinstance(part, Causal):
        cite("MASK-2")
        return (column <= query)[None, None] if queries > 1 else None
    if isinstance(part, Window):
        cite("MASK-4")
        return (query - column < part.size)[None, None] if queries else None
    _cite_explicit(part.array)
    return part.array


def _cite_explicit(array: Array) -> None:
    cite("MASK-5" if array.dtype == bool else "MASK-6", "MASK-17")
    if array.shape[3] == 1:
        cite("MASK-11")
    if array.shape[2] == 0:
        cite("MASK-16")
    if array.dtype == bool and array.size and not array.any(axis=3).all():
        cite("MASK-14")


def intersected(a: Array, b: Array) -> Array:
    """Both booleans: and. One of scores: minus infinity where the other hides. Both of scores: their sum, and minus
    infinity where one has it."""
    if a.dtype == bool and b.dtype == bool:
        return np.asarray(a & b)
    if a.dtype != bool and b.dtype != bool:
        with np.errstate(over="ignore", invalid="ignore"):
            return _hiding(a + b, a, b)
    seen, scores = (a, b) if a.dtype == bool else (b, a)
    return np.where(seen, scores, np.float32(-np.inf))


def _hiding(added: Array, a: Array, b: Array) -> Array:
    """The sum of two arrays of scores. It hides what either hides, also where the other is plus infinity."""
    return np.where(np.isneginf(a) | np.isneginf(b), np.float32(-np.inf), added)


def gathered(mask: Array, index: int, rows: int) -> Array:
    """Position order to slot order: slot s takes column (s - index) mod K. A single column stands for all."""
    if mask.shape[3] == 1:
        return mask
    cite("MASK-10")
    return mask[..., (np.arange(rows) - index) % rows]
