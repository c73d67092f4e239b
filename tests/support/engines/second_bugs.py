"""The engine of `docs/engine.md`, whose window is one row too wide, with a second bug behind the known one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, from_update
from tools.floors import ROOT

PAGE = (ROOT / "docs/engine.md").read_text(encoding="utf-8")
page: dict[str, Any] = {}
exec(next(text for text in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S) if "/engine.py" in text), page)
SlidingCache: Any = page["SlidingCache"]


class DropsBeforeThree(SlidingCache):
    """Drops the oldest row that it has when three rows come at once."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        if self.keys is not None and keys.shape[2] == 3:
            self.keys, self.values = self.keys[:, :, 1:], self.values[:, :, 1:]
            self.offset += 1
        return super().update_and_fetch(keys, values)


class HidesItsOwnRow(SlidingCache):
    """Hides the newest row from its own query, when one row comes after three."""

    def make_mask(self, n: int) -> Any:
        mask = super().make_mask(n)
        return mask & (np.arange(mask.shape[1]) < mask.shape[1] - (n == 1 and self.offset == 4))


class SwapsValues(SlidingCache):
    """Swaps the values of two rows that come at once."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        return super().update_and_fetch(keys, values[:, :, ::-1] if values.shape[2] == 2 else values)


class CountsTwice(SlidingCache):
    """Counts four rows as five."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        found = super().update_and_fetch(keys, values)
        self.offset += keys.shape[2] == 4
        return found


class MixesHeads(SlidingCache):
    """Puts the keys of two heads in the other order once the window is full."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        return super().update_and_fetch(keys[:, ::-1] if self.offset >= self.size else keys, values)


class ShowsTheFuture(SlidingCache):
    """Shows the first of three queries the row after its own."""

    def make_mask(self, n: int) -> Any:
        mask = super().make_mask(n)
        if n == 3:
            mask[0, mask.shape[1] - 2] = True
        return mask


class ForgetsAtSeven(SlidingCache):
    """Has no old rows when more come after the seventh."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        if self.keys is not None and self.offset >= 7:
            self.keys, self.values = self.keys[:, :, :0] * 0, self.values[:, :, :0] * 0
        return super().update_and_fetch(keys, values)


class MixesSequences(SlidingCache):
    """Puts the rows of the sequences of a batch in the other order when two come at once."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        turn = slice(None, None, -1) if keys.shape[2] == 2 else slice(None)
        return super().update_and_fetch(keys[turn], values[turn])


class NegatesOldRows(SlidingCache):
    """Changes the sign of its newest value when the window has moved on."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        if self.keys is not None and self.offset > self.size:
            self.values = np.concatenate([self.values[:, :, :-1], -self.values[:, :, -1:]], axis=2)
        return super().update_and_fetch(keys, values)


class TwoTooWide(SlidingCache):
    """Shows one row more yet, in windows of three."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size += size == 3


class RefusesFive(SlidingCache):
    """Refuses five rows at once."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        if keys.shape[2] == 5:
            raise ValueError("five rows")
        return super().update_and_fetch(keys, values)


SECOND = (
    *(DropsBeforeThree, HidesItsOwnRow, SwapsValues, CountsTwice, MixesHeads, ShowsTheFuture, ForgetsAtSeven),
    *(MixesSequences, NegatesOldRows, TwoTooWide, RefusesFive),
)
"""The engines with a second bug."""


def adapter(cache: Any) -> UpdateAdapter:
    """The adapter of `docs/engine.md`."""
    return from_update(
        cache.__name__,
        kind="ring",
        make=lambda config: cache(size=config.window),
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        length=lambda cache: cache.offset,
        mask=lambda cache, n: cache.make_mask(n),
        dialect={"ring.shape": "first append"},
        said={"version": "1.4"},
    )


globals().update({cache.__name__: adapter(cache) for cache in (SlidingCache, *SECOND)})
