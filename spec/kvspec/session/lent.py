"""Arrays that were passed in or out of a cache, as its caller holds them: the newest, up to a number and a size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from kvspec.geometry import Array

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
