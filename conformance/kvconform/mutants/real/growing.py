"""Bugs of offsets, lengths and rewinds, planted in the reference's growing cache."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import planted
from kvref.growing import Growing
from kvref.rows import count
from kvspec.contract import Lengths, Pair
from kvspec.geometry import Array


@planted(
    "POS-02",
    breaks="GROW-5 GROW-6",
    anomaly="stale-tail",
    seen="ollama/ollama/commit/a64570dcae17794adf100a85667180e03b6d7ef2",
)
class LastOneStays(Growing):
    """A rewind cuts one row too few and then moves the offset back by one, so that the last row is stored
    twice."""

    left = 0

    def _clear(self) -> None:
        super()._clear()
        self.left = 0

    def rewind(self, to: int) -> None:
        super().rewind(min(to + 1, self.offset) if 0 < to < self.offset - self.left else to)
        self.left = self.offset - to

    def lengths(self) -> Lengths:
        real = super().lengths()
        return real._replace(offset=real.offset - self.left)


@planted(
    "POS-04",
    breaks="GROW-1 GROW-2 GROW-14",
    seen="google/gemma.cpp/commit/18e601287222a922fcf3d11bc7fa56fc09d20101",
)
class ChunkByPosition(Growing):
    """Rows of a chunk are looked up by their position in the cache instead of their position in the chunk."""

    def _feed(self, new: Pair) -> None:
        order = (self.offset + np.arange(count(new))) % count(new)
        super()._feed(Pair(new.keys[:, :, order], new.values[:, :, order]))


@planted(
    "POS-11",
    breaks="GROW-3 MASK-16",
    anomaly="wrong-mask",
    seen="ollama/ollama/commit/dd5eb6337dab84d76d7edec2c102064504d75378",
)
class QueriesLeft(Growing):
    """An append of no rows, when the cache already has the whole prompt, keeps the query count of the append
    before."""

    def append(self, keys: Array, values: Array) -> None:
        before = self.queries
        super().append(keys, values)
        if keys.shape[2] == 0:
            self.queries = before


@planted("POS-19", breaks="GROW-5", anomaly="silent-no-op", seen="nicedreamzapp/claude-code-local/pull/47")
class TrimsFromTheStep(Growing):
    """A rewind to a target at or beyond the growth step drops nothing, and reports success."""

    def rewind(self, to: int) -> None:
        offset = self.offset
        super().rewind(to)
        if 0 < self.config.step <= to:
            self.offset = offset


@planted("POS-19", breaks="GROW-14", anomaly="padding-seen", seen="nicedreamzapp/claude-code-local/pull/47")
class CapacityAsLength(Growing):
    """The number of buffered rows is reported as the capacity."""

    def lengths(self) -> Lengths:
        return super().lengths()._replace(buffered=len(self.rows))
