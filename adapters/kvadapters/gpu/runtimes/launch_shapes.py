"""Launch shapes for the kernels: (items of a group, groups), three axes each, in the order of the kernel text."""

from __future__ import annotations

from collections.abc import Callable

from kvadapters.gpu.runtime import Work

Axes = tuple[int, int, int]
Shape = Callable[[Work], tuple[Axes, Axes]]

GROUP = 128
"""Items of a group on a GPU."""

MOST_GROUPS = 65535
"""Groups CUDA allows along the second axis; heads beyond are reached by striding."""


def gpu(work: Work) -> tuple[Axes, Axes]:
    """An item for each word: up to 32 lanes side by side on a row, so that neighbours read neighbours."""
    lanes = min(32, 1 << (work.words - 1).bit_length())
    rows = GROUP // lanes
    return (lanes, rows, 1), (-(-work.rows // rows), min(work.heads, MOST_GROUPS), work.parts)


def snug(work: Work) -> tuple[Axes, Axes]:
    """As on a GPU, with one row of a group idle at most: for tools to which an idle item costs as much as any."""
    (lanes, rows, _), groups = gpu(work)
    return (lanes, min(rows, work.rows + 1), 1), groups


def cpu(work: Work, workers: int) -> tuple[Axes, Axes]:
    """An item for each head, in groups of one, up to about `workers` of them; the others are reached by striding.
    Where heads are few, an item for some of the rows of each.

    Heads first, because the rows of a head lie side by side: an item that strides over rows passes over all pages
    of a head to move a part of it, which made long copies three times slower (`kvconform profile`). Groups of one,
    because a CPU runtime compiles every kernel anew for each group size.
    """
    heads = min(work.heads, workers)
    rows = min(work.rows, max(1, workers // heads))
    return (1, 1, 1), (rows, heads, 1)
