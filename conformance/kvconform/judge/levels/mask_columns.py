"""Explicit masks as wide as an adapter's own history. Traces write them as wide as the spec's: K at level visible.

An array that is too wide or too narrow stays so. An append without rows may hand out no history. Then the right
width is not known, and the result of an explicit mask is not compared.
"""

from __future__ import annotations

import numpy as np

from kvspec.geometry import Array
from kvspec.masks import Explicit, Logical, Part
from kvspec.operations.table import Operation, cache_of

HANDING_OUT = ("append", "draft")
"""Operations that hand out a history."""

Looked = tuple[str, str]
"""The owner of a history: a cache, and for a history of drafts the round of speculation, else an empty text."""


def looked(op: Operation) -> Looked:
    """The owner of the history that an operation makes or looks at."""
    name = op["name"] if op["op"] == "draft" else op.get("round")
    return cache_of(op), name or ""


class Widths:
    """The widths of the last histories: by the spec, and as the adapter handed them out."""

    def __init__(self) -> None:
        self._widths: dict[Looked, tuple[int, int]] = {}

    def note(self, op: Operation, wanted: int, width: int) -> None:
        """Note the history of an append or of drafts: its width by the spec, and as it was handed out."""
        self._widths[looked(op)] = wanted, width

    def forget(self, op: Operation) -> None:
        """Note that an append or a draft handed out no history."""
        self._widths.pop(looked(op), None)
        if op["n"] == 0:
            self.note(op, 0, 0)

    def fitted(self, op: Operation, logical: Logical, room: int | None) -> Logical:
        """Give the mask with its arrays as wide as the adapter's history. `room` is the number of slots of a
        buffer that may be handed out whole."""
        wanted, width = self._widths.get(looked(op), (0, 0))
        return tuple(_fitted(part, wanted, width, width == room) for part in logical) if width else logical

    def unknown(self, op: Operation, logical: Logical) -> bool:
        """Whether nothing tells which width is right for an array of this mask."""
        _, width = self._widths.get(looked(op), (0, 1))
        return width == 0 and any(map(_is_wide, logical))


def _is_wide(part: Part) -> bool:
    return isinstance(part, Explicit) and part.array.ndim == 4 and part.array.shape[3] != 1


def _fitted(part: Part, wanted: int, width: int, whole: bool) -> Part:
    if not isinstance(part, Explicit) or not _is_wide(part):
        return part
    columns = width + part.array.shape[3] - wanted
    wrong = part.array.shape[3] != wanted
    return Explicit(_columns(part.array, width + 1 if wrong and columns == 1 else columns, whole))


def _columns(array: Array, width: int, whole: bool) -> Array:
    """Give the newest `width` columns. Missing columns are added, and hide what they belong to. That is older rows,
    or the spare slots behind all rows if the history is a `whole` buffer."""
    missing = width - array.shape[3]
    if missing <= 0:
        return np.ascontiguousarray(array[..., -missing:])
    hidden = False if array.dtype == bool else -np.inf
    added = (0, missing) if whole else (missing, 0)
    return np.pad(array, [(0, 0)] * 3 + [added], constant_values=hidden)
