"""The texts of refusals of attention, shared like those of `kvspec.refusals.common`."""

from __future__ import annotations

from typing import Any

from kvspec.errors import Refused
from kvspec.geometry import Array


def queries(clause: str, found: Any, wanted: tuple[int | str, ...]) -> Refused:
    """Queries of another shape or dtype; `wanted` are their sizes, a text where any will do."""
    shape = ", ".join(map(str, wanted))
    return Refused(clause, f"attend: expected queries f32 [{shape}], found {found.dtype} {list(found.shape)}")


def heads(clause: str, heads: int, kv_heads: int) -> Refused:
    """Query heads that cannot be shared out among the kv heads."""
    return Refused(
        clause, f"attend: {heads} query heads; they must be a multiple of the {kv_heads} kv heads, not 0"
    )


def splits(clause: str, splits: int) -> Refused:
    """Tiles that are to be parted into none."""
    return Refused(clause, f"attend: {splits} splits; there must be 1 or more")


def mask_heads(clause: str, array: Array, heads: int) -> Refused:
    """A mask for other heads than the queries'."""
    return Refused(
        clause, f"attend: a mask for {array.shape[1]} heads, of queries in {heads}; it must be for 1 or all"
    )


def output(clause: str, found: Any, wanted: tuple[int, ...]) -> Refused:
    """A given output of another shape or dtype."""
    return Refused(
        clause, f"attend: expected an output f32 {list(wanted)}, found {found.dtype} {list(found.shape)}"
    )


def read_only(clause: str) -> Refused:
    """A given output that cannot be written."""
    return Refused(clause, "attend: the output that is given can only be read")


def shorter(clause: str, sequence: int, layer: int, held: int, length: int) -> Refused:
    """A layer that lacks rows of a sequence."""
    return Refused(
        clause, f"attend: layer {layer} holds {held} rows of sequence {sequence}, whose length is {length}"
    )


def dropped(clause: str) -> Refused:
    """Captured attention whose layer is gone."""
    return Refused(clause, "replay: the store it was captured on has begun anew; capture it again")
