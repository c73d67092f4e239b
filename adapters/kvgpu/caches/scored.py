"""Attention with another scale or a softcap: one launch computes the scores, then the strict kernel attends.

It takes the scores as a mask's array, over rows whose keys have no elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvgpu.caches import attention
from kvgpu.caches.attention import LOG2E, Pages, Positions, Ready, Runs
from kvgpu.caches.queries import FLOAT
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.row_groups import MOST_PARTS
from kvgpu.runtime import Work
from kvspec.contract import Attention
from kvspec.geometry import DTYPES

NUMBERS = 4
"""Numbers before the elements of an array: entries, heads, width, and where the elements begin."""


class OverScores(Ready):
    """An attend to rows whose keys have no elements: the scores are only what is added."""

    def _sizes(self) -> tuple[int, ...]:
        *sizes, _, v_dim, bits = super()._sizes()
        return *sizes, 0, v_dim, bits


@dataclass(frozen=True)
class Scored:
    """An attend that lacks only its rows, by a scale or a softcap; `scores` has room for `width` rows a query."""

    ready: Ready
    how: Attention
    scores: DeviceRows
    width: int

    def answer(self, rows: Runs | Pages, positions: Positions) -> Any:
        """Launch once for the scores, then as `Ready.answer` does, and give the output."""
        self._score(rows, positions)
        return self._strict().answer(rows, positions)

    def leave_parts(self, rows: Runs | Pages, positions: Positions, sinks: bool = True) -> None:
        """Launch what leaves the parts of all splits: see `Ready.leave_parts`."""
        self._score(rows, positions)
        self._strict().leave_parts(rows, positions, sinks)

    def _strict(self) -> OverScores:
        asked = self.ready
        asking = asked.asking._replace(added=(np.zeros(0),))
        places = asked.partials, asked.target, asked.host, asked.out, asked.sinks
        return OverScores(asked.space, asked.config, asked.size, asked.queries, asking, self.scores, *places)

    def _score(self, rows: Runs | Pages, positions: Positions) -> None:
        asked, config = self.ready, self.ready.config
        entries, heads, queries, _ = asked.size
        lie, tables, where = attention._lying(rows, asked.queries.block)
        blocks = rows.place.keys, asked.queries.block, asked.added.block, tables, self.scores.block
        sizes = entries, heads, config.kv_heads, queries, config.k_dim, *bits(self.how, config.k_dim)
        keys_at = rows.place.keys_at // DTYPES[config.dtype].itemsize
        places = asked.queries.at // FLOAT.itemsize, keys_at, rows.place.slots, positions.first, positions.end
        seen = int(asked.asking.causal), asked.asking.window, len(asked.asking.added), self.width
        work = Work(positions.end - positions.first, 1, heads, min(entries, MOST_PARTS))
        asked.space.runtime.launch(f"scores_{lie}_{config.dtype}", work, *blocks, *sizes, *places, *seen, *where)


def bits(how: Attention, k_dim: int) -> tuple[int, ...]:
    """Give the factor of queries, the softcap, and 2 log2(e) / softcap, as the bits of f32 numbers."""
    factor = 1 / np.sqrt(np.float64(k_dim)) if how.scale is None else how.scale
    slope = 2 * LOG2E / how.softcap if how.softcap else 0.0
    return tuple(int(FLOAT.type(number).view(np.uint32)) for number in (factor, how.softcap, slope))


def by(space: Workspace, how: Attention, ready: Ready, rows: int) -> Any:
    """Give the attend that is ready, with room for the scores of `rows` rows if it has a scale or a softcap. Raises
    MemoryError."""
    if how.scale is None and not how.softcap:
        return ready
    nbytes = (NUMBERS + ready.size.units // ready.size.splits * rows) * FLOAT.itemsize
    block = space.scratch("scores", nbytes)
    return Scored(ready, how, DeviceRows(space.runtime, block, (nbytes,), FLOAT), rows)
