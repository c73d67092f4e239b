"""Attention over padded blocks: the columns of each sequence ask by themselves, over its rows where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvgpu.caches.attention import Positions, Ready, Runs, in_form, prepare
from kvgpu.caches.queries import FLOAT, Asking
from kvgpu.memory.buffers import Workspace
from kvspec.geometry import Array, Config
from kvspec.refusals import ragged as refusals


class AttendingBlocks:
    """Mixin of the ragged cache, which knows where the rows of each sequence lie."""

    space: Workspace
    config: Config
    lengths: list[int]
    held: list[int]

    def feed(self, keys: Any, values: Any, lengths: Sequence[int]) -> None:
        """Append the columns of a block that sequences own."""
        raise NotImplementedError

    def demand_block(self, keys: Any, values: Any, lengths: Sequence[int]) -> int:
        """Count the columns of a block. Refuses a block that does not fit, and lengths that it does not have."""
        raise NotImplementedError

    def owned(self, lengths: Sequence[int], columns: int) -> list[range]:
        """The columns of a block that each sequence owns."""
        raise NotImplementedError

    def lying(self, sequence: int) -> Runs:
        """Where the rows of a sequence lie as they are kept. It must have some."""
        raise NotImplementedError

    def readable(self, sequence: int) -> Runs:
        """Where they lie as they are read."""
        raise NotImplementedError

    def attend_block(self, queries: Any, keys: Any, values: Any, lengths: Sequence[int]) -> Array:
        """Feed a block, and have its queries `[sequences, heads, n, k_dim]` attend, zeros for padding: two launches
        more than a feed for each sequence that asks."""
        columns = self.demand_block(keys, values, lengths)
        self._demand_queries(queries, columns)
        owned = self.owned(lengths, columns)
        own = [(slice(s, s + 1), slice(None), slice(a.start, a.stop)) for s, a in enumerate(owned)]
        output = np.zeros((*queries.shape[:3], self.config.v_dim), FLOAT)
        asking = sorted(np.flatnonzero(lengths).tolist(), key=lambda s: -lengths[s])
        # the longest allocates before the feed what the others use after it
        first = [self._ready(queries[own[s]]) for s in asking[:1]]
        self.feed(keys, values, lengths)
        for s in asking:
            output[own[s]] = self._answer(s, first.pop() if first else self._ready(queries[own[s]]))
        return output

    def _demand_queries(self, queries: Any, columns: int) -> None:
        """Refuse queries that are not one for each column, in heads that can share those of the rows."""
        wanted = len(self.lengths), "heads", columns, self.config.k_dim
        shape = tuple(queries.shape)
        fits = len(shape) == 4 and (shape[0], *shape[2:]) == (wanted[0], *wanted[2:])
        if not fits or queries.dtype != FLOAT or shape[1] < 1 or shape[1] % self.config.kv_heads:
            raise refusals.queries("RAGGED-38", queries, wanted)

    def _ready(self, queries: Array) -> Ready:
        plain, asking = self.config.changed(form=None, batch=1), Asking(window=self.config.window or 0)
        return prepare(self.space, plain, queries, asking, 1, 1)

    def _answer(self, sequence: int, ready: Ready) -> Any:
        """Launch it on the rows that a sequence has now."""
        positions = Positions(self.lengths[sequence] - self.held[sequence], self.lengths[sequence])
        if (formed := in_form(ready, self.config)) is not None:
            return formed.answer(self.lying(sequence), positions)
        return ready.answer(self.readable(sequence), positions)
