"""Launch shapes of kernels: (items of a group, groups), three axes each, in the kernel text's order."""

from __future__ import annotations

from collections.abc import Callable

from kvadapters.gpu.runtime import Work

Axes = tuple[int, int, int]
Shape = Callable[[Work], tuple[Axes, Axes]]

GROUP = 128
"""Items of a group on a GPU."""

MOST_GROUPS = 65535
"""Groups that CUDA allows along the second axis; striding reaches the heads beyond."""


def gpu(work: Work) -> tuple[Axes, Axes]:
    """Give one item to each word: up to 32 adjacent lanes on a row, so that neighbours read neighbours."""
    lanes = min(32, 1 << (work.words - 1).bit_length())
    rows = GROUP // lanes
    return (lanes, rows, 1), (-(-work.rows // rows), min(work.heads, MOST_GROUPS), work.parts)


def snug(work: Work) -> tuple[Axes, Axes]:
    """Shape as on a GPU, with at most one idle row in a group: for tools in which idle items cost as much as
    others."""
    (lanes, rows, _), groups = gpu(work)
    return (lanes, min(rows, work.rows + 1), 1), groups


def cpu(work: Work, workers: int) -> tuple[Axes, Axes]:
    """Give one item to each head, in groups of one, up to about `workers`; striding reaches the other heads. If
    heads are few, split the rows of each head over several items.

    Heads first, because the rows of a head lie side by side: an item that strides over rows visits all pages of a
    head to move a part of it. That made long copies three times slower (`kvconform profile`). Groups of one,
    because a CPU runtime compiles every kernel again for each group size.
    """
    heads = min(work.heads, workers)
    rows = min(work.rows, max(1, workers // heads))
    return (1, 1, 1), (rows, heads, 1)
