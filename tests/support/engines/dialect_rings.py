"""Rings that keep a dialect, and rings that break it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.geometry import Config, Pair, fits
from support.engines.update_engines import WindowCache


class Chunks(WindowCache):
    """Takes so many rows at once, and no more."""

    def most(self) -> int:
        return self.window + 1

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        if new[0].shape[2] > self.most():
            raise ValueError("too many rows at once")
        return super().update_and_fetch(*new)


class Allocates(Chunks):
    """Takes as many rows at once as it has allocated."""

    def most(self) -> int:
        return self.window + 2


class AllocatesLess(Allocates):
    """Takes fewer rows at once than it says that it has allocated."""

    def most(self) -> int:
        return self.window


class StrictlyBelow(WindowCache):
    """Trims nothing once it is full, and raises even if no row is to be trimmed."""

    def trim(self, n: int) -> None:
        if self.offset >= self.window:
            raise ValueError("the ring is full")
        super().trim(n)


class Longer(WindowCache):
    """Keeps rows beyond the window, and trims as many, counted from the highest offset there was."""

    MORE = 2
    highest = 0

    def old(self) -> int:
        return min(self.rows[0].shape[2] if self.rows else 0, self.window - 1 + self.MORE)

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        if not self.rows:
            return self._counted(super().update_and_fetch(*new))
        if (
            any(a.dtype != b.dtype for a, b in zip(self.rows, new, strict=True))
            or new[0].shape[2] != new[1].shape[2]
        ):
            raise TypeError("other rows")
        old = [a[:, :, a.shape[2] - self.old() :] for a in self.rows]
        self.rows = [np.concatenate(pair, axis=2) for pair in zip(old, new, strict=True)]
        self.offset += new[0].shape[2]
        return self._counted((self.rows[0], self.rows[1]))

    def _counted(self, rows: tuple[Any, Any]) -> tuple[Any, Any]:
        self.highest = max(self.highest, self.offset)
        return rows

    def make_mask(self, n: int) -> Any:
        columns = self.old() + n
        query, column = np.arange(columns - n, columns)[:, None], np.arange(columns)
        return (column <= query) & (column > query - self.window)

    def trim(self, n: int) -> None:
        if n and not (0 < n <= self.offset and self.reaches(n)):
            raise ValueError(f"cannot trim {n} of {self.offset}")
        self.rows = [a[:, :, : a.shape[2] - n] for a in self.rows]
        self.offset -= n

    def reaches(self, n: int) -> bool:
        return self.highest <= self.window or self.highest - self.offset + n <= self.MORE


class LongerFromTheEnd(Longer):
    """The same, counted from the offset: after two trims rows are missing."""

    def reaches(self, n: int) -> bool:
        return self.highest <= self.window or n <= self.MORE


class Recording(Longer):
    """Trims what the last update added."""

    MORE = 0
    before = 0

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        before = self.offset
        found = super().update_and_fetch(*new)
        self.before = before
        return found

    def reaches(self, n: int) -> bool:
        return self.highest <= self.window or self.offset - n >= self.before


class TrimsOnce(Recording):
    """The same, but a trim cuts the rows to the window, so that the next one leaves it short."""

    def trim(self, n: int) -> None:
        super().trim(n)
        if self.highest > self.window and self.rows:
            self.rows = [a[:, :, max(0, a.shape[2] - self.window + 1) :] for a in self.rows]


class Drafts(Longer):
    """Keeps each row from the beginning of a round to its end, where it drops the newest."""

    MORE = 0

    def begin(self) -> None:
        self.MORE = 1 << 20

    def end(self, n: int) -> None:
        self.trim(n)
        self.rows = [a[:, :, max(0, a.shape[2] - self.window + 1) :] for a in self.rows]
        self.MORE, self.highest = 0, self.offset

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        if self.rows and not new[0].shape[2]:
            return self.rows[0], self.rows[1]
        return super().update_and_fetch(*new)


class KeepsADraft(Drafts):
    """Drops one draft too few."""

    def end(self, n: int) -> None:
        super().end(max(0, n - 1))


class Clamps(WindowCache):
    """Trims as many rows as there are, and none if asked for fewer than none."""

    def trim(self, n: int) -> None:
        super().trim(max(0, min(n, self.offset)))


class ClampsHalf(WindowCache):
    """Trims as many rows as there are; a negative number makes the cache longer."""

    def trim(self, n: int) -> None:
        self.offset -= min(n, self.offset) if n < 0 else 0
        super().trim(max(0, min(n, self.offset)))


class ClampsAtZero(WindowCache):
    """Trims as many rows as there are, and raises if asked for fewer than none."""

    def trim(self, n: int) -> None:
        super().trim(min(n, self.offset))


class KeepsOneMore(WindowCache):
    """Keeps as many old rows as its window has; its caller makes the masks."""

    WIDER = 1


class NeverDrops(WindowCache):
    """Keeps every row."""

    WIDER = 1 << 20


class Strict(WindowCache):
    """Takes rows of one geometry only, that of its config."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.window or 0)
        self.config = config

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        if not fits(self.config, Pair(*new)):
            raise ValueError("rows of another geometry")
        return super().update_and_fetch(*new)


class Empties(WindowCache):
    """Has a reset, after which any geometry is right again."""

    def reset(self) -> None:
        self.offset, self.rows = 0, []


class EmptiesItsRows(Empties):
    """Has a reset, after which the geometry is the same."""

    def reset(self) -> None:
        self.offset, self.rows = 0, [a[:, :, :0] for a in self.rows]


class MasksAfter(WindowCache):
    """Makes the mask from the rows that there are."""

    def make_mask(self, n: int) -> Any:
        columns = self.rows[0].shape[2]
        query, column = np.arange(columns - n, columns)[:, None], np.arange(columns)
        return (column <= query) & (column > query - self.window)
