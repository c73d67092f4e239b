"""What engines make of a copy that the spec lets pass, or refuses."""

from __future__ import annotations

from math import prod

from kvref.list_model.copy import BufferModel, Overlap
from kvref.list_model.rows import Rows
from kvref.list_model.unsaid import Unsaid, may


class ChecksNoRows(BufferModel):
    """A copy of no rows, or of rows without elements, is checked like any other, and may be refused."""

    def copy(self, keys: Rows | Overlap, values: Rows | Overlap, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if n == 0 or not any(prod(a.shape[1:]) for a in (keys, values) if isinstance(a, Rows)):
            raise Unsaid("ok refused", kept=True)


class TakesAnyType(BufferModel):
    """Rows of another type are cast."""

    def copy(self, keys: Rows | Overlap, values: Rows | Overlap, n: int, at: int, sliding: bool) -> None:
        with may("ok", "COPY-18"):
            super().copy(keys, values, n, at, sliding)


class TakesPlacesBelow(BufferModel):
    """A position below 0 counts from the end."""

    def copy(self, keys: Rows | Overlap, values: Rows | Overlap, n: int, at: int, sliding: bool) -> None:
        with may("ok", "COPY-21"):
            super().copy(keys, values, n, at, sliding)
