"""Launch shapes of kernels: (items of a group, groups), three axes each, in the kernel text's order."""

from __future__ import annotations

from collections.abc import Callable

from kvgpu.runtime import Work

Axes = tuple[int, int, int]
Shape = Callable[[Work], tuple[Axes, Axes]]
ShapeOfKernel = Callable[[str, Work], tuple[Axes, Axes]]

SIDE_BY_SIDE = ("copy", "cast")
"""Beginnings of names of kernels whose source has the heads of a row side by side."""

GROUP = 128
"""Items of a group on a GPU."""

FLAT, AT_ONCE = ("move", "place", "scatter", "prepare", "clear", "poison"), 4
"""Beginnings of names of kernels that work on words side by side, row after row, and how many an item takes."""

PAGE = 16
"""Rows of a usual page: a warp takes a page at a time."""

ITEMS = 4
"""Items for each core of a CPU, so that none waits long for the last."""

MOST_GROUPS = 65535
"""Groups that CUDA allows along the second axis; striding reaches the heads beyond."""


def gpu(work: Work, most: int = 32) -> tuple[Axes, Axes]:
    """Give one item to each word: up to `most` adjacent lanes on a row, so that neighbours read neighbours."""
    lanes = min(most, 1 << (work.words - 1).bit_length())
    rows = GROUP // lanes
    return (lanes, rows, 1), (-(-work.rows // rows), min(work.heads, MOST_GROUPS), work.parts)


def on_a_gpu(kernel: str, work: Work) -> tuple[Axes, Axes]:
    """Give the shape of a kernel in the texts for GPUs, whose items take `AT_ONCE` words or rows at a time. One row
    alone has an item for each word."""
    if kernel.startswith("hopper"):  # the heads are warps of a block
        return (work.words, work.heads, 1), (work.rows, 1, 1)
    if work.rows == 1 or not kernel.startswith((*FLAT, *SIDE_BY_SIDE, "page")):
        return gpu(work)
    # A token-major row has all heads in it: with a warp for each row most of a GPU would have nothing to do.
    items, (groups, heads, parts) = gpu(work, GROUP)
    if kernel.startswith(SIDE_BY_SIDE):
        return items, (-(-groups // AT_ONCE), heads, parts)
    count = -(-work.rows // PAGE) * 32 if kernel.startswith("page") else -(-work.rows * work.words // AT_ONCE)
    return (32, GROUP // 32, 1), (-(-count // GROUP), heads, parts)


def cpu(work: Work, workers: int) -> tuple[Axes, Axes]:
    """Give one item to each head of each part, in groups of one, up to about `workers`; striding reaches the other
    heads. Only where they are fewer than the cores, split the rows of each head over several items.

    Rows are split last, because the rows of a head lie side by side. An item that strides over rows visits all
    pages of a head to move a part of it, which made long copies two to three times slower (`kvconform profile`).
    Groups have one item, because a CPU runtime compiles every kernel again for each group size.
    """
    heads = min(work.heads, workers)
    parts = min(work.parts, max(1, workers // heads))
    few = heads * parts * ITEMS < workers
    rows = min(work.rows, workers // (heads * parts)) if few else 1
    return (1, 1, 1), (rows, heads, parts)


def rows_on_a_cpu(work: Work) -> tuple[Axes, Axes]:
    """Give one item to each row with all its heads, if these lie side by side at the source. With an item for each
    head, every item visits every page of the source; long copies took two to eight times as long."""
    return (1, 1, 1), (work.rows, 1, work.parts)


def on_a_cpu(workers: int) -> ShapeOfKernel:
    """Give the shape of every kernel on a CPU that this many items keep busy."""

    def shape(kernel: str, work: Work) -> tuple[Axes, Axes]:
        return rows_on_a_cpu(work) if kernel.startswith(SIDE_BY_SIDE) else cpu(work, workers)

    return shape


def alike(shape: Shape) -> ShapeOfKernel:
    """Give one shape for all kernels."""
    return lambda _, work: shape(work)
