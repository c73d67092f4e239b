"""A given output: the array that an attend must write its result to."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kvspec.geometry import DTYPES, Array

GUARD = 64
"""Guard elements before and behind a given output on the host; nothing may write to them."""


class OutputRoom:
    """An array full of NaN; on the host it is between two guards, and read-only unless `writeable`. With an
    `adapter` it is on that adapter's device."""

    def __init__(self, shape: tuple[int, ...], dtype: str, writeable: bool, adapter: Any) -> None:
        self._all: Array = np.full(prod(shape) + 2 * GUARD, np.nan, DTYPES[dtype])
        mine = self._all[GUARD:-GUARD].reshape(shape)
        mine.flags.writeable = writeable
        self._adapter = adapter
        self.out: Any = mine if adapter is None else adapter.place(mine)[0]

    def answer(self, returned: Any) -> Any:
        """The output, wherever the caller looks for it: on the host in the array it handed in."""
        return self.out if self._adapter is None else returned

    @property
    def guarded(self) -> bool:
        """Tell whether nothing was written beside it."""
        return bool(np.isnan(self._all[:GUARD]).all() and np.isnan(self._all[-GUARD:]).all())

    def untouched(self) -> bool:
        """Tell whether nothing was written at all."""
        array = self._all if self._adapter is None else self._adapter.fetch(self.out)
        return bool(np.isnan(array).all())
