"""Bugs of the catalogue that are bugs of RoPE and of positions, planted in the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.reference import Reference
from kvconform.mutants.planting import planted
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.rope import rotate
from kvspec.contract import Attention, Pair, Rope
from kvspec.geometry import Array
from kvspec.refusals import common


class Elsewhere:
    """A cache that turns at other positions than it should; everything else is as it should be."""

    config: Any
    offset: int

    def queries_at(self, n: int) -> Array:
        return self.keys_at(n)

    def keys_at(self, n: int) -> Array:
        return self.offset + np.arange(n)

    def attend(
        self, queries: Array, keys: Array, values: Array, how: Attention, out: Any = None, of: Any = None
    ) -> Array:
        new, asked = Pair(keys, values), how.rope
        if asked is not None and keys.shape[2] == queries.shape[2] > 0 and common.fits(self.config, new):
            queries = rotate(queries, self.queries_at(keys.shape[2]), asked)
            keys, how = rotate(keys, self.keys_at(keys.shape[2]), asked), how._replace(rope=None)
        found: Array = super().attend(queries, keys, values, how, out, of)  # type: ignore[misc]
        return found


@planted("DTYPE-07", breaks="ROPE-5", anomaly="overwritten-rows")
class NarrowIndices(Reference):
    """Positions are converted to 32-bit indices."""

    def rotate(self, rows: Array, positions: Array, rope: Rope) -> Array:
        return super().rotate(rows, np.asarray(positions).astype(np.int32).astype(np.int64), rope)


@planted("ROPE-01", breaks="ROPE-20")
class ClampedToTheWindow(Elsewhere, Ring):
    """A prefill's table of angles is only as long as the window."""

    def keys_at(self, n: int) -> Array:
        positions = self.offset + np.arange(n)
        return np.minimum(positions, self.config.window - 1) if n > 1 else positions


@planted("ROPE-02", breaks="ROPE-19")
class FromZero(Elsewhere, Growing):
    """Every chunk is rotated as if it began at position 0."""

    def keys_at(self, n: int) -> Array:
        return np.arange(n)


@planted("ROPE-07", breaks="ROPE-19")
class AtTheNextOffset(Elsewhere, Growing):
    """Queries are rotated by the offset after the append."""

    def queries_at(self, n: int) -> Array:
        return self.offset + n + np.arange(n)


@planted("POS-01", breaks="ROPE-21")
class GoesOnCounting(Elsewhere, Growing):
    """Positions are never reused after a rewind."""

    counted = 0

    def queries_at(self, n: int) -> Array:
        return self.counted + np.arange(n)

    def keys_at(self, n: int) -> Array:
        self.counted += n
        return self.counted - n + np.arange(n)


@planted("POS-03", breaks="ROPE-19")
class SecondTurn(Elsewhere, Growing):
    """A decode counts its position from the beginning of the newest prompt."""

    began = 0

    def keys_at(self, n: int) -> Array:
        self.began = self.offset if n > 1 else min(self.began, self.offset)
        return self.offset - self.began + np.arange(n)


@planted("POS-16", breaks="ROPE-19")
class CountsTheTokenUnderWay(Elsewhere, Growing):
    """A decode is rotated one position too far."""

    def keys_at(self, n: int) -> Array:
        return self.offset + np.arange(n) + (n == 1 and self.offset > 0)


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
