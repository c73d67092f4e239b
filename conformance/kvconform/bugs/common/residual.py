"""Common bugs of residual windows: rows that are rounded too early or twice, and copies of rows that are gone."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing
from kvref.memory import mem
from kvref.memory.forms import is_encoded
from kvref.memory.residual import Residual
from kvref.memory.rows import Rows, count
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array, Config, newest


class Windowed(Growing):
    """A growing cache that has such a residual window."""

    keeps: type[Residual] = Residual

    def _clear(self) -> None:
        super()._clear()
        if newest(self.config):
            self.rows = self.keeps(self.config)


@planted("wrong-rounding", breaks="ROW-25 ROW-30")
class NoWindow(Growing):
    """All rows are rounded at once, whatever window was asked for."""

    def _clear(self) -> None:
        super()._clear()
        self.rows = Rows(self.config)


class _OneFewer(Residual):
    def write(self, slot: int, new: Pair) -> None:
        super().write(slot, new)
        end = slot + count(new)
        self.over = min(end, max(self.over, end - self.most + 1))


@planted("wrong-rounding", breaks="ROW-25 ROW-30")
class WindowOneShort(Windowed):
    """A row goes over when one row fewer than the window has is behind it."""

    keeps = _OneFewer


class _Late(Residual):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.most += 1


@planted("wrong-rounding", breaks="ROW-26 ROW-29")
class WindowOneMore(Windowed):
    """A row goes over when one row more than the window has is behind it."""

    keeps = _Late


class _ByAppend(Residual):
    def write(self, slot: int, new: Pair) -> None:
        super().write(slot, new)
        if not is_encoded(new) and count(new) > 1:
            self.over = slot + count(new)


@planted("wrong-rounding", breaks="ROW-25 ROW-30")
class PromptRounded(Windowed):
    """All rows of an append of several go over at once, as of a prompt, whatever was appended before."""

    keeps = _ByAppend


class _Halves(Residual):
    def shown(self, slots: list[int] | slice) -> Pair:
        return Pair(super().shown(slots).keys, Rows.shown(self, slots).values)


@planted("wrong-rounding", breaks="ROW-25 ROW-30")
class KeysAlone(Windowed):
    """Keys have a residual window, and values are rounded at once."""

    keeps = _Halves


class _FirstSequence(Residual):
    def _copy(self, first: int, rows: Pair) -> None:
        super()._copy(first, Pair(*(np.repeat(a[:1], a.shape[0], 0) for a in rows)))


@planted("wrong-sequence", breaks="ROW-25")
class CopiesOfTheFirstSequence(Windowed):
    """The plain rows of every sequence are those of the first."""

    keeps = _FirstSequence


class _Stale(Residual):
    highest = 0

    def write(self, slot: int, new: Pair) -> None:
        super().write(slot, new)
        self.highest = max(self.highest, slot + count(new))
        self.over = self.over if is_encoded(new) else max(0, self.highest - self.most)


@planted("stale-tail", breaks="ROW-27 ROW-25")
class WindowAtTheHighestOffset(Windowed):
    """After a rewind the window still ends where the cache once was: new rows are rounded at once."""

    keeps = _Stale


@planted("stale-tail", breaks="ROW-27")
class WindowFromTheOffset(Windowed):
    """After a rewind the newest rows are read from copies, though those of the first were overwritten."""

    def rewind(self, to: int) -> None:
        back = to < self.offset
        super().rewind(to)
        if back and isinstance(self.rows, Residual):
            self.rows.over = max(0, to - self.rows.most)


class _Kept(Residual):
    end = 0

    def write(self, slot: int, new: Pair) -> None:
        over, copied = self.over, self.end > slot
        super().write(slot, new)
        self.end = slot + count(new)
        if is_encoded(new) and copied:
            self.over = over


@planted("stale-tail", breaks="ROW-28")
class WindowOverARestore(Windowed):
    """Copies of rows stay when others are restored in their places."""

    keeps = _Kept


class _HalfCopies(Residual):
    def _copy(self, first: int, rows: Pair) -> None:
        with np.errstate(over="ignore"):
            super()._copy(first, Pair(*(a.astype(np.float16).astype(a.dtype) for a in rows)))


@planted("wrong-rounding", breaks="ROW-25 ROW-30")
class CopiesOf16Bits(Windowed):
    """Plain rows are kept in f16, whatever the dtype of the cache is."""

    keeps = _HalfCopies


class _InPairs(Residual):
    def write(self, slot: int, new: Pair) -> None:
        super().write(slot, new)
        self.over -= self.over > 0 and not is_encoded(new) and self.over % 2

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.most += 1
        self.spare = self.config.beside_bytes // newest(config)

    @property
    def nbytes(self) -> int:
        return super().nbytes - (self.spare if self.beside else 0)


@planted("wrong-rounding", breaks="ROW-26")
class GoesOverInPairs(Windowed):
    """Rows go over two by two."""

    keeps = _InPairs


@planted("wrong-rounding", breaks="ROW-16")
class AttendsInTheForm(Growing):
    """Queries attend to all rows in the form; what is read is right."""

    def attend(self, queries: Array, keys: Array, values: Array, how: Attention, *more: Any) -> Array:
        rows = self.rows
        if not isinstance(rows, Residual):
            return super().attend(queries, keys, values, how, *more)
        rows.__class__ = _Blind
        try:
            return super().attend(queries, keys, values, how, *more)
        finally:
            rows.__class__ = Residual


class _Blind(Residual):
    shown = Rows.shown


@planted("miscounted-memory", breaks="ROW-29")
class WindowForgotten(Growing):
    """The bytes of the residual window are counted nowhere."""

    def held(self) -> int:
        return len(self.rows) * self.config.row_bytes

    def plan(self, n: int) -> mem.Plan:
        after, most = super().plan(n)
        beside = self.config.beside_bytes
        return max(0, after - beside), max(0, most - beside)
