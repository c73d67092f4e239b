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
    """An item for each row, in groups of one, up to about `workers` of them; the others are reached by striding.

    Groups of one, because a CPU runtime compiles every kernel anew for each group size.
    """
    rows = min(work.rows, workers)
    heads = min(work.heads, max(1, workers // rows))
    return (1, 1, 1), (rows, heads, 1)
