"""Arrays that a session hands in, and those that it holds as their caller does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from kvspec.geometry import DTYPES, Array

MOST, BYTES = 1024, 32 << 20
"""Arrays that are held at most, and the bytes of their copies. An engine may hand out buffers in turn, so that the
first is overwritten long after it was handed out."""

FEWEST = 32
"""Arrays that are held whatever their size."""

Pair = tuple[Any, Array | None]
"""An array, and a copy of what it held; None where nothing was observed."""


class Lent:
    """The arrays of one cache, the oldest first."""

    def __init__(self) -> None:
        self._pairs: deque[Pair] = deque()
        self._bytes = 0

    def append(self, pair: Pair) -> None:
        """Hold one more, and let go of the oldest where there are too many."""
        self._pairs.append(pair)
        self._bytes += _size(pair)
        while len(self._pairs) > (FEWEST if self._bytes > BYTES else MOST):
            self._bytes -= _size(self._pairs.popleft())

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def clear(self) -> None:
        """Let go of all of them."""
        self._pairs.clear()
        self._bytes = 0


def _size(pair: Pair) -> int:
    return 0 if pair[1] is None else pair[1].nbytes


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


def with_batch_axis(array: Any) -> Array:
    """Add the batch axis in front of rows `[kv_heads, n, dim]`."""
    return np.asarray(array)[None]
