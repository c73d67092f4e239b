"""ggml on a CPU: its flash attention, as in llama.cpp, after the new rows were copied behind the context."""

from __future__ import annotations

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.correct import demand
from kvprofile.peers.ggml import Graph, Library, aligned
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.numpy_peer import Arrays
from kvspec.geometry import Array

BEHIND = {"attention": 1, "ring attention": 0, "captured attention": 0}
"""The operations it has that append, and how often `case.rows` rows lie behind the context after an append."""

ALONE = "batch attention"
"""The operation that only attends."""


class AlignedArrays(Arrays):
    """numpy, with arrays that begin where ggml wants them to."""

    def wrap(self, array: Array) -> Array:
        """Copy the array."""
        return aligned(array)


class FlashAttention:
    """The peer. Its graphs are made before the clock runs, so a turn only computes one."""

    name = "ggml"

    def __init__(self) -> None:
        self._library = Library()
        self.words = f"{self._library.words}: flash_attn_ext, new rows copied behind the others"

    def job(self, case: Case, memory: int) -> Job | None:
        """Copy the newest rows into a buffer and attend. Raises Wrong if the output is wrong."""
        if case.operation not in (*BEHIND, ALONE):
            return None
        rows = Rows(AlignedArrays(), case, memory)
        held = case.context + BEHIND.get(case.operation, 0) * case.rows
        caches = rows.caches(held)
        sources = rows.caches(case.rows, 64, 1) if case.operation in BEHIND else [()]
        queries, mask = aligned(rows.queries()), _mask(case.rows, held)
        out = aligned(np.zeros((case.batch, case.rows, case.model.heads, case.model.v_dim), np.float32))
        graphs = [
            self._graph(cache, sources[i % len(sources)], queries, mask, out) for i, cache in enumerate(caches)
        ]
        graphs[0].run()
        demand(case.dtype, out.swapaxes(1, 2), queries, *caches[0])
        return Job(lambda i: graphs[i % len(graphs)].run())

    def _graph(
        self,
        cache: tuple[Array, Array],
        new: tuple[Array, ...],
        queries: Array,
        mask: Array | None,
        out: Array,
    ) -> Graph:
        graph, rows = Graph(self._library), cache[0].shape[2]
        keys, values = map(graph.tensor, cache)
        for source, target in zip(new, (keys, values), strict=False):
            graph.copy(source, target, rows - source.shape[2], rows)
        graph.attend(queries, keys, values, mask, out)
        return graph

    def wait(self) -> None:
        """Do nothing: it is done when it returns."""


def _mask(n: int, rows: int) -> Array | None:
    """Give the array that is added to the scores of n queries; the last query sees all rows. None for one query."""
    if n == 1:
        return None
    ahead = np.arange(rows) > rows - n + np.arange(n)[:, None]
    return aligned(np.where(ahead, -np.inf, 0.0).astype(np.float16)[None, None])
