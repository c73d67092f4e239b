"""ggml on a CPU: its flash attention, as in llama.cpp, after the new rows were copied behind the context."""

from __future__ import annotations

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.correct import demand
from kvprofile.peers.ggml import Graph, Library, aligned, decoded
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.numpy_peer import Arrays
from kvspec.forms import Form, parsed
from kvspec.geometry import Array

BEHIND = {"attention": 1, "ring attention": 0, "captured attention": 0}
"""The operations it has that append, and how often `case.rows` rows lie behind the context after an append."""

FORMS = ("q8_0",)
"""The forms whose blocks it attends over."""

ALONE = "batch attention"
"""The operation that only attends."""


class AlignedArrays(Arrays):
    """numpy, with arrays that begin where ggml wants them to."""

    def wrap(self, array: Array) -> Array:
        """Copy the array."""
        return aligned(array)


class Blocks(AlignedArrays):
    """The same with rows in ggml's blocks."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def copy(self, array: Array) -> Array:
        """Copy to where ggml wants it."""
        return aligned(array)

    def encoded(self, form: Form, rows: Array) -> tuple[Array, ...]:
        """Encode by ggml."""
        return (self._library.encoded(form, rows.astype(np.float32)),)


class FlashAttention:
    """The peer. Its graphs are made before the clock runs, so a turn only computes one."""

    name = "ggml"

    def __init__(self) -> None:
        self._library = Library()
        self.words = f"{self._library.words}: flash_attn_ext, new rows copied behind the others"

    def job(self, case: Case, memory: int) -> Job | None:
        """Copy the newest rows into a buffer and attend. Raises Wrong if the output is wrong."""
        if case.operation not in (*BEHIND, ALONE) or case.form not in (None, *FORMS):
            return None
        form = None if case.form is None else parsed(case.form)[0]
        rows = Rows(Blocks(self._library) if form else AlignedArrays(), case, memory)
        held = case.context + BEHIND.get(case.operation, 0) * case.rows
        caches = [(keys, values) for (keys,), (values,) in rows.formed(held)] if form else rows.caches(held)
        shape, dtype = (case.batch, case.model.kv_heads, case.rows), "f32" if form else ""  # it encodes only f32
        sources = rows.pairs(shape, 64, dtype, 1) if case.operation in BEHIND else [()]
        queries, mask = aligned(rows.queries()), _mask(case.rows, held)
        out = aligned(np.zeros((case.batch, case.rows, case.model.heads, case.model.v_dim), np.float32))
        graphs = [
            self._graph(cache, sources[i % len(sources)], queries, mask, out, form)
            for i, cache in enumerate(caches)
        ]
        graphs[0].run()
        asked, (keys, values) = queries, caches[0]
        if form:  # beside rows in a form it keeps queries in that form too
            asked, keys, values = (
                decoded(form, kept) for kept in (self._library.encoded(form, queries), keys, values)
            )
        demand(case.dtype, out.swapaxes(1, 2), asked, keys, values)
        return Job(lambda i: graphs[i % len(graphs)].run())

    def _graph(
        self,
        cache: tuple[Array, Array],
        new: tuple[Array, ...],
        queries: Array,
        mask: Array | None,
        out: Array,
        form: Form | None,
    ) -> Graph:
        graph, rows = Graph(self._library), cache[0].shape[2]
        keys, values = (graph.tensor(part, form) for part in cache)
        for source, target in zip(new, (keys, values), strict=False):
            at = rows - source.shape[2]
            graph.copy(source, target, at, rows) if form is None else graph.encode(source, target, at)
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
