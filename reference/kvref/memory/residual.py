"""A residual window: the newest rows beside those in a form, as they were handed in.

All rows are encoded when they are written, so a row that goes over into the form is one whose copy is not looked at
any more.
"""

from __future__ import annotations

import numpy as np

from kvref.cite import cite
from kvref.memory import meter
from kvref.memory.forms import is_encoded
from kvref.memory.rows import Rows, count
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config, newest


def rows_of(config: Config) -> Rows:
    """Storage for the rows of a cache that may have a residual window."""
    return Residual(config) if newest(config) else Rows(config)


class Residual(Rows):
    """Rows in a form, and the newest ones beside them: position p in slot p modulo their number."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.most = newest(config)
        self.beside: Pair | None = None
        self.over = 0
        """The first position that has a copy, as all behind it have."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        if self.beside is None:
            return super().nbytes
        cite("ROW-29")
        return super().nbytes + sum(a.nbytes for a in self.beside)

    def write(self, slot: int, new: Pair) -> None:
        """Put new rows into the slots from `slot` on. Those that are in the form already have no copies, and
        neither has any row before them."""
        super().write(slot, new)
        self.over, end = min(self.over, slot), slot + count(new)
        if is_encoded(new):
            cite("ROW-28")
            self.over = end
        else:
            cite("ROW-25", *["ROW-26"] * (end - self.over > self.most))
            self.over = max(self.over, end - self.most)
            first = max(slot, self.over)
            self._copy(first, Pair(*(a[:, :, first - slot :] for a in new)))

    def _copy(self, first: int, rows: Pair) -> None:
        """Keep rows, the first of which has this position."""
        assert self.beside is not None, "slots are allocated before rows are written"
        for target, source in zip(self.beside, rows, strict=True):
            for i in range(source.shape[2]):
                meter.write(target[:, :, (first + i) % self.most], source[:, :, i])

    def _none(self) -> Pair:
        shapes = (self.config.shape(kind, self.most) for kind in "kv")
        return Pair(*(meter.allocated(shape, DTYPES[self.config.dtype]) for shape in shapes))

    def _replace(self, slots: int, start: int, stop: int) -> None:
        super()._replace(slots, start, stop)
        self.beside = self.beside or self._none()

    def shown(self, slots: list[int] | slice) -> Pair:
        """The rows in these slots, in this order, as they are read, on the device."""
        rows = super().shown(slots)
        if self.beside is None:
            return rows
        chosen = range(len(self))[slots] if isinstance(slots, slice) else slots
        plain = [(i, slot % self.most) for i, slot in enumerate(chosen) if self.over <= slot]
        return Pair(*(_over(a, was, plain) for a, was in zip(rows, self.beside, strict=True)))


def _over(rows: Array, beside: Array, plain: list[tuple[int, int]]) -> Array:
    """Decoded rows, some of them as they were handed in."""
    made = np.array(rows)
    for to, at in plain:
        made[:, :, to] = beside[:, :, at]
    return made.view(type(rows))
