"""Attention to parts of the rows, one after another, and their join: as if a mask hid the rows of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from kvgpu.caches.attention import Pages, Positions, Ready, Runs
from kvgpu.caches.queries import FLOAT, Asking
from kvgpu.caches.scored import Scored
from kvgpu.memory.buffers import Workspace
from kvgpu.runtime import Block, Work
from kvspec.contract import Attention


@dataclass(frozen=True)
class Parted:
    """An attend that lacks only its rows, of `rows` columns cut at `cuts`. What hides the others begins at the
    number `at` of the arrays that are added; `joined` is where the parts come together."""

    attend: Ready | Scored
    cuts: tuple[int, ...]
    rows: int
    at: int
    joined: Block

    def answer(self, rows: Runs | Pages, positions: Positions) -> Any:
        """Attend to each part, join them, and give the output: see `Ready.answer`."""
        for which, (begin, end) in enumerate(pairwise((0, *self.cuts, self.rows))):
            self._part(which, begin, end, rows, positions)
        ready = _ready(self.attend)
        whole = replace(ready, size=ready.size._replace(splits=len(self.cuts) + 1), partials=self.joined)
        whole.join()
        return whole.output()

    def _part(self, which: int, begin: int, end: int, rows: Runs | Pages, positions: Positions) -> None:
        ready = _ready(self.attend)
        runtime, queries, splits = ready.space.runtime, ready.size.queries, ready.size.splits
        hidden = self.at, queries, self.rows, begin, end
        runtime.launch("attend_hides", Work(self.rows, queries), ready.added.block, *hidden)
        self.attend.leave_parts(rows, positions, sinks=which == 0)
        units = ready.size.units // splits
        numbers = units, splits, ready.config.v_dim, which, len(self.cuts) + 1
        runtime.launch("attend_part", Work(1, units), ready.partials, self.joined, *numbers)


def _ready(attend: Ready | Scored) -> Ready:
    return attend.ready if isinstance(attend, Scored) else attend


def hiding(how: Attention, asking: Asking, n: int, rows: int) -> Asking:
    """Give what n queries see of so many rows with an array more, if they are cut into parts: a kernel writes what
    it hides."""
    if not how.parts:
        return asking
    hides = np.zeros((1, 1, n, rows), FLOAT)
    return asking._replace(added=(*asking.added, hides), written=hides.size)


def by(space: Workspace, how: Attention, attend: Ready | Scored, rows: int) -> Any:
    """Give the attend that is ready, cut into parts if it is to be. Raises MemoryError."""
    if not how.parts:
        return attend
    ready = _ready(attend)
    cells, parts = ready.size.units // ready.size.splits, len(how.parts) + 1
    joined = space.scratch("parts", cells * parts * (ready.config.v_dim + 2) * FLOAT.itemsize)
    at = ready.added.shape[0] - ready.asking.written
    return Parted(attend, how.parts, rows, at, joined)
