"""A small engine as engines are, in numpy, and faults planted in it; each judged through `from_update`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Config


class WindowCache:
    """The newest rows in temporal order: W - 1 old ones, and those of the last update."""

    WIDER = 0
    """Rows that a query sees beyond its window."""

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError("a window has one row or more")
        self.window, self.offset = window, 0
        self.rows: list[Any] = []

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        keys, values = new
        if keys.shape[:3] != values.shape[:3]:
            raise ValueError("as many keys as values")
        if not self.rows:
            self.rows = [a[:, :, :0] for a in new]
        if any(a.dtype != b.dtype for a, b in zip(self.rows, new, strict=True)):
            raise TypeError("rows of another dtype")
        kept = min(self.offset, self.window - 1 + self.WIDER)
        self.rows = [
            np.concatenate([a[:, :, a.shape[2] - kept :], b], axis=2) for a, b in zip(self.rows, new, strict=True)
        ]
        self.offset += keys.shape[2]
        return self.rows[0], self.rows[1]

    def make_mask(self, n: int) -> Any:
        columns = min(self.offset, self.window - 1 + self.WIDER) + n
        query, column = np.arange(columns - n, columns)[:, None], np.arange(columns)
        return (column <= query) & (column > query - self.window - self.WIDER)

    def trim(self, n: int) -> None:
        if n and not 0 < n <= self.offset <= self.window:
            raise ValueError(f"cannot trim {n} of {self.offset}")
        self.rows = [a[:, :, : a.shape[2] - n] for a in self.rows]
        self.offset -= n


class TooWide(WindowCache):
    """Keeps and shows one row more than the window."""

    WIDER = 1


class NeverDrops(WindowCache):
    """Hides the future and nothing else, and keeps every row."""

    WIDER = 1 << 20


class HandsOutItsBuffer(WindowCache):
    """Returns its own buffer, and writes the next row into it."""

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        before = self.rows
        found = super().update_and_fetch(*new)
        if before and all(a.shape == b.shape for a, b in zip(before, self.rows, strict=True)):
            for old, rows in zip(before, self.rows, strict=True):
                old[...] = rows
            self.rows = before
            return before[0], before[1]
        return found


class KeepsItsFirstRows(WindowCache):
    """Keeps the arrays of its first rows, as an engine may that never writes into what it was given."""

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        first = not self.rows
        found = super().update_and_fetch(*new)
        self.rows = list(new) if first else self.rows
        return found


class WrongBehindARefusal(WindowCache):
    """Refuses to trim more than two rows, and when it trims one it forgets to count."""

    def trim(self, n: int) -> None:
        if n > 2:
            raise ValueError("at most two rows are trimmed")
        super().trim(n)
        self.offset += n == 1


class CountsBeforeItChecks(WindowCache):
    """Counts rows that it then refuses."""

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        keys, values = new
        wrong = keys.shape[:3] != values.shape[:3]
        self.offset += keys.shape[2] if wrong else 0
        return super().update_and_fetch(*new)


class OnlyBelow(WindowCache):
    """Writes over its first row as soon as it is full, so that it trims only before."""

    def trim(self, n: int) -> None:
        if n and self.offset >= self.window:
            raise ValueError("the ring is full")
        super().trim(n)


class Never(WindowCache):
    """Trims nothing."""

    def trim(self, n: int) -> None:
        if n:
            raise ValueError("nothing is trimmed")


class CountsLaterRows(WindowCache):
    """Counts rows of another width than those that there are, none too, and then refuses them."""

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        wrong = any(a.shape[3] != b.shape[3] for a, b in zip(self.rows, new, strict=False))
        self.offset += new[0].shape[2] if wrong else 0
        return super().update_and_fetch(*new)


class CountsTrimmedRows(WindowCache):
    """Drops rows when it is told to, and goes on counting them."""

    def trim(self, n: int) -> None:
        super().trim(n)
        self.offset += n


class Fused(WindowCache):
    """Attends by itself: an update hands out nothing, and a view shows the rows that the next query needs."""

    def update_and_fetch(self, *new: Any) -> Any:
        super().update_and_fetch(*new)

    def window_rows(self) -> Any:
        live = min(self.offset, self.window - 1 + self.WIDER)
        return tuple(a[:, :, a.shape[2] - live :].copy() for a in self.rows) if live else None


class FusedTooWide(Fused):
    """Keeps and shows one row more than the window."""

    WIDER = 1


def adapter(cache: type[WindowCache], *also: str, **more: Any) -> UpdateAdapter:
    functions: dict[str, Any] = {
        "kind": "ring",
        "make": lambda config: cache(config.window or 0),
        "update": lambda c, keys, values: c.update_and_fetch(keys, values),
        "length": lambda c: c.offset,
        "trim": lambda c, n: c.trim(n),
        "mask": lambda c, n: c.make_mask(n),
    }
    return from_update(
        cache.__name__, **{"also": ("batch", *also), "said": {"version": "1.5"}, **functions, **more}
    )


class Saves(WindowCache):
    """Saves its rows in arrays of their own, with the sizes it was made for."""

    sizes: tuple[Any, ...] = ()

    def save(self) -> Any:
        return [a.copy() for a in self.rows], self.offset, self.sizes

    def load(self, saved: Any) -> None:
        rows, offset, sizes = saved
        if sizes != self.sizes:
            raise ValueError("the rows are of a cache of other sizes")
        self.rows, self.offset = list(rows), offset


class SavesByReference(Saves, HandsOutItsBuffer):
    """Saves the arrays that it goes on to write into."""

    def save(self) -> Any:
        return self.rows, self.offset, self.sizes


class LoadsNoOffset(Saves):
    """Counts from 0 when its rows are back."""

    def load(self, saved: Any) -> None:
        super().load(saved)
        self.offset = 0


def saving(cache: type[Saves]) -> UpdateAdapter:
    def make(config: Config) -> Saves:
        made = cache(config.window or 0)
        made.sizes = (config.window, config.batch, config.kv_heads, config.k_dim, config.v_dim, config.dtype)
        return made

    return adapter(cache, make=make, state=lambda c: c.save(), set_state=lambda c, saved: c.load(saved))


def fused(cache: type[Fused], *without: str) -> UpdateAdapter:
    return adapter(cache, mask=None, view=lambda c: c.window_rows(), without=("history", *without))


shown_by_its_view, fused_too_wide, shown_by_nothing = fused(Fused), fused(FusedTooWide), fused(FusedTooWide, "view")
right, too_wide, never_drops = adapter(WindowCache), adapter(TooWide), adapter(NeverDrops)
keeps_its_first_rows = adapter(KeepsItsFirstRows)
hands_out_its_buffer, behind_a_refusal = adapter(HandsOutItsBuffer, "scribble"), adapter(WrongBehindARefusal)
counts_before_it_checks, counts_later_rows = adapter(CountsBeforeItChecks), adapter(CountsLaterRows)
counts_trimmed_rows, claims_a_view = adapter(CountsTrimmedRows), adapter(WindowCache, "view")
saves, saves_by_reference, loads_no_offset = saving(Saves), saving(SavesByReference), saving(LoadsNoOffset)
BELOW, NEVER = {"ring.rewind": "below"}, {"ring.rewind": "never"}
only_below, only_below_declared = adapter(OnlyBelow), adapter(OnlyBelow, dialect=BELOW)
never, never_declared = adapter(Never), adapter(Never, dialect=NEVER)
below_declared_and_more_done = adapter(WindowCache, dialect=BELOW)
