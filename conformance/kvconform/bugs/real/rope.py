"""Bugs of the catalogue that are bugs of RoPE and of positions, planted in the reference."""

from __future__ import annotations

import numpy as np

from kvadapters.reference import Reference
from kvconform.bugs.planting import planted
from kvspec.contract import Rope
from kvspec.geometry import Array


@planted("ROPE-05", breaks="ROPE-14")
class SecondDifferenceAlone(Reference):
    """A second rotation is applied to the original rows, so that the first one is lost."""

    def __init__(self) -> None:
        self.before: tuple[Array, Array] | None = None

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        given, again = rows, self.before is not None and rows is self.before[1]
        if again and self.before is not None:
            given = self.before[0]
        made = super().rotate(given, positions, rope)
        self.before = None if again else (rows, made)
        return made


@planted("ROPE-09", breaks="ROPE-3", anomaly="desynchronised-layers")
class OneBase(Reference):
    """Every layer uses the base of the first layer that rotates."""

    base = 0

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        self.base = self.base or rope.base
        return super().rotate(rows, positions, rope._replace(base=self.base if rope.base > 0 else rope.base))


@planted("DTYPE-03", breaks="ROPE-17")
class RoundedBefore(Reference):
    """Rows in bf16 are rounded to 13 binary digits first, and again when they are stored."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        if rows.dtype.itemsize != 2 or rows.dtype == np.float16:
            return super().rotate(rows, positions, rope)
        wide, step = super().rotate(rows.astype(np.float32), positions, rope).view(np.uint32), np.uint32(1 << 11)
        twice = ((wide + step // 2 - 1 + (wide // step & 1)) // step * step).view(np.float32)
        return np.where((positions == 0)[:, None], rows, twice.astype(rows.dtype))
