"""Attention on a store: on one layer, on one layer's rows of each sequence of its batch, and captured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvref.abilities import attention, rope
from kvref.abilities.attention import Seen
from kvref.abilities.batch import Batch, Batching
from kvref.cite import cite
from kvref.memory import forms
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array, still
from kvspec.masks import CAUSAL
from kvspec.refusals import attention as refusals_attention
from kvspec.refusals import common as refusals


class Attending(Batching, attention.Answering):
    """Mixin of a store: attention."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Append rows."""
        raise NotImplementedError

    def demand_rows(self, new: Pair, layer: int | None) -> Sequence[int]:
        """The layers meant; refuse rows that do not fit them, or have no room."""
        raise NotImplementedError

    def attend(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        how: Attention,
        out: Array | None = None,
        of: int | None = None,
    ) -> Array:
        """Append n rows to layer `of`, and have n queries `[1, heads, n, k_dim]` attend to what it holds."""
        if attention.nothing(queries, keys):
            return attention.empty(self.config, queries, out)
        self._one(of)
        (layer,) = self.demand_rows(Pair(keys, values), of)
        n, end = keys.shape[2], self.lengths_[layer] + keys.shape[2]
        seen = Seen(how.through, end, end)
        attention.demand(self.config, queries, (1, None, n), how, end, out)
        queries, keys = rope.at_positions(how.rope, end - n, queries, keys, still(self.config))
        self.append(keys, values, layer)
        cite("ATTN-1", "ATTN-16", "ATTN-13" if out is None else "ATTN-14")
        forms.cite_attended(self.config)
        held = self.kept.decoded(Pair(self.keys[layer][None, :, :end], self.values[layer][None, :, :end]))
        return attention.given(out, self.answered(queries, held, seen, how), queries)

    def _one(self, layer: int | None) -> None:
        """Refuse a layer that does not exist; all layers together are not one."""
        if layer is None or not 0 <= layer < len(self.lengths_):
            raise refusals.layer("STORE-9", -1 if layer is None else layer, len(self.lengths_))

    def attend_batch(
        self,
        queries: Array,
        layer: int,
        splits: int = 1,
        out: Array | None = None,
        sinks: tuple[float, ...] | None = None,
    ) -> Array:
        """A query `[m, heads, 1, k_dim]` at the last position of each sequence attends to the layer's rows of that
        sequence."""
        if queries.ndim == 4 and queries.shape[2] == 0:
            return attention.empty(self.config, queries, out)
        batch = self._batch("attend")
        self._demand_whole(batch, layer)
        m, how = len(batch.lengths), Attention(splits=splits, sinks=sinks)
        attention.demand(self.config, queries, (m, None, 1), how, 0, out)
        cite("ATTN-17", *(["ATTN-18"] if 0 in batch.lengths else []), "ATTN-13" if out is None else "ATTN-14")
        forms.cite_attended(self.config)
        cite(*([] if sinks is None else ["ATTN-60"]))
        found = [self._alone(batch, queries[s : s + 1], layer, s, how) for s in range(m)]
        return attention.given(out, np.concatenate(found), queries)

    def _demand_whole(self, batch: Batch, layer: int) -> None:
        """Refuse a layer that does not exist, or that lacks rows of a sequence."""
        if not 0 <= layer < batch.layers:
            raise refusals.layer("BATCH-9", layer, batch.layers)
        for s, n in enumerate(batch.lengths):
            if batch.held[s][layer] < n:
                raise refusals_attention.shorter("ATTN-19", s, layer, batch.held[s][layer], n)

    def _alone(self, batch: Batch, query: Array, layer: int, sequence: int, how: Attention) -> Array:
        """The output of one sequence's query over its rows."""
        n = batch.lengths[sequence]
        rows = (a[layer][sequence : sequence + 1, :, :n] for a in (batch.keys, batch.values))
        held = self.kept.decoded(Pair(*rows))
        return self.answered(query, held, Seen(CAUSAL, n, n), how)

    def capture_attend(
        self, layer: int, heads: int, splits: int = 1, sinks: tuple[float, ...] | None = None
    ) -> CapturedAttention:
        """An attend of one row on a layer, captured."""
        self._one(layer)
        how = Attention(splits=splits, sinks=sinks)
        attention.demand_how(self.config, heads, splits)
        attention.demand_scoring(how, heads)
        cite("ATTN-20")
        return CapturedAttention(self, layer, heads, how)


class CapturedAttention:
    """A captured attend on the memory of one layer. Each replay reads where to write, and how long the layer is."""

    def __init__(self, store: Attending, layer: int, heads: int, how: Attention) -> None:
        self.store, self.layer, self.heads, self.how = store, layer, heads, how
        self.memory = store.keys

    def replay(self, queries: Array, keys: Array, values: Array) -> Array:
        """Do it again, on these queries `[1, heads, 1, k_dim]` and rows `[1, kv_heads, 1, dim]`: the output."""
        if self.store.keys is not self.memory:
            raise refusals_attention.dropped("ATTN-22")
        self.store.demand_rows(Pair(keys, values), self.layer)
        rows = self.store.lengths_[self.layer] + 1
        attention.demand(self.store.config, queries, (1, self.heads, 1), self.how, rows, None)
        found = self.store.attend(queries, keys, values, self.how, None, self.layer)
        cite("ATTN-21", *([] if self.how.sinks is None else ["ATTN-60"]))
        return found
