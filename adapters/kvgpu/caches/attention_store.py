"""Attention on a store: over one layer, over the batch's rows in one layer, and captured."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvgpu.caches import attention, parted, rope, scored
from kvgpu.caches.attention import Positions, Runs, in_form, prepare
from kvgpu.caches.batch import Batching
from kvgpu.caches.queries import FLOAT, Fit, asked, demand, demand_how, demand_scoring, empty, nothing
from kvgpu.memory.batch_rows import Sequences
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import rows_in
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.layout import Place
from kvgpu.memory.row_forms import Codec
from kvgpu.memory.row_groups import Layers
from kvspec.contract import Attention
from kvspec.masks import CAUSAL
from kvspec.refusals import attention as refusals_attention
from kvspec.refusals import common as refusals


class Attending(Batching):
    """Mixin of a store: attention."""

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        """Append rows."""
        raise NotImplementedError

    def demand_rows(self, keys: Any, values: Any, layer: int | None) -> tuple[int, int]:
        """Give the first layer of an append, and how many layers. Refuses rows that do not fit or have no room."""
        raise NotImplementedError

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Append n rows to layer `of`, and have n queries `[1, heads, n, k_dim]` attend to what it holds."""
        if nothing(queries, keys):
            return empty(self.config, queries, out)
        layer = self._one(of)
        self.demand_rows(keys, values, layer)
        n, plain = rows_in(keys), self.config.changed(form=None)
        end = self.lengths_[layer] + n
        demand(self.config, Fit((1,), n, end), queries, how, out)
        rope.demand_attend(how.rope, self.config)
        asking = parted.hiding(how, asked(how.through), n, end)
        ready = prepare(self.space, plain, queries, asking, how.splits, self.max_len, out, how.sinks)
        ready, keys, values = rope.at_positions(self.space, self.config, how.rope, ready, keys, values, end - n)
        ready = scored.by(self.space, how, ready, end)
        ready = parted.by(self.space, how, ready, end)
        self.append(keys, values, layer)
        if (formed := in_form(ready, self.config)) is not None:
            return formed.answer(runs(self.layers, layer), Positions(0, end))
        return ready.answer(readable(self.layers, layer, 1, end), Positions(0, end))

    def _one(self, layer: int | None) -> int:
        """Refuse a layer that does not exist; all layers together are not one."""
        if layer is None or layer < 0 or layer >= len(self.lengths_):
            raise refusals.layer("STORE-9", -1 if layer is None else layer, len(self.lengths_))
        return layer

    def attend_batch(
        self, queries: Any, layer: int, splits: int = 1, out: Any = None, sinks: tuple[float, ...] | None = None
    ) -> Any:
        """Queries `[m, heads, 1, k_dim]`, one at the last position of each sequence, attend to the rows of their
        sequences in one layer. The lengths are on the device."""
        if len(queries.shape) == 4 and queries.shape[2] == 0:
            return empty(self.config, queries, out)
        batch = self.demand_batch("attend")
        self._demand_whole(batch, layer)
        m, plain = len(batch.lengths), self.config.changed(form=None)
        demand(self.config, Fit((m,), 1), queries, Attention(splits=splits, sinks=sinks), out)
        ready = prepare(self.space, plain, queries, asked(CAUSAL), splits, self.max_len, out, sinks)
        lengths = Positions(lengths=batch.memory.lengths, at=layer, stride=batch.layers)
        if (formed := in_form(ready, self.config)) is not None:
            return formed.answer(runs(batch.memory, layer * batch.places), lengths)
        longest = max(1, int(batch.lengths.max()))
        return ready.answer(readable(batch.memory, layer * batch.places, m, longest), lengths)

    def _demand_whole(self, batch: Sequences, layer: int) -> None:
        """Refuse a layer that does not exist or lacks rows of a sequence."""
        if layer < 0 or layer >= batch.layers:
            raise refusals.layer("BATCH-9", layer, batch.layers)
        short = np.flatnonzero(batch.held[:, layer] < batch.lengths)
        if short.size:
            s = int(short[0])
            raise refusals_attention.shorter("ATTN-19", s, layer, int(batch.held[s, layer]), int(batch.lengths[s]))

    def capture_attend(
        self, layer: int, heads: int, splits: int = 1, sinks: tuple[float, ...] | None = None
    ) -> CapturedAttention:
        """Capture an attend of one row on a layer."""
        self._one(layer)
        how = Attention(splits=splits, sinks=sinks)
        demand_how(self.config, heads, splits)
        demand_scoring(how, heads)
        return CapturedAttention(self, layer, heads, how)


def runs(layers: Layers, group: int) -> Runs:
    """Say where rows of groups lie, from this group on."""
    return Runs(layers.begin(group), layers.config.kv_heads * layers.rows.slots)


def readable(layers: Layers, group: int, groups: int, n: int) -> Runs:
    """Say where the first n rows of groups lie as they are read, from this group on."""
    place = layers.shown(group, groups, n)
    return Runs(place, layers.config.kv_heads * place.slots)


class CapturedAttention:
    """A captured attend of one row. It has scratch space of its own, and each replay puts its row and queries
    there. The kernels read the length on the device: it says where the row goes, and which rows are attended
    to."""

    def __init__(self, store: Attending, layer: int, heads: int, how: Attention) -> None:
        self.store, self.layer, self.heads, self.how = store, layer, heads, how
        self.layers, self.space = store.layers, Workspace(store.space.runtime)
        self.codec = Codec(self.space, store.config)
        kept, plain = self.codec.kept, store.config.changed(form=None)
        queries = np.zeros((1, heads, 1, store.config.k_dim), FLOAT)
        asking = asked(how.through)
        self.ready = prepare(self.space, plain, queries, asking, how.splits, store.max_len, sinks=how.sinks)
        self.rows = Place.packed(self.space.scratch("rows", kept.packed(1)[1]), kept, 1)
        self._readable()  # allocates what the work decodes to, before it is captured
        self.work = store.space.runtime.capture(self._launch)

    def _launch(self) -> None:
        self.layers.place(self.rows, self.layer, 1)
        lengths = Positions(lengths=self.layers.lengths, at=self.layer)
        self.ready.launch(self._readable(), lengths)

    def _readable(self) -> Runs:
        """Say where all slots of the layer lie as they are read; it is captured how long the layer may become, and
        not how long it is."""
        place = self.layers.begin(self.layer)
        if self.store.config.form is not None:
            place = self.codec.decoded(place, place.slots)
        return Runs(place, self.layers.config.kv_heads * place.slots)

    def replay(self, queries: Any, keys: Any, values: Any) -> Any:
        """Replay it with these queries `[1, heads, 1, k_dim]` and rows `[1, kv_heads, 1, dim]`; give the output,
        on the host or the device as the queries are."""
        self._demand(queries, keys, values)
        there = isinstance(queries, DeviceRows)
        out = attention.room(self.space, self.ready.target.shape, host=False) if there else None
        self._take(keys, values)
        attention.put(queries, self.ready.queries)
        self.work.replay()
        self.store.lengths_[self.layer] += 1
        if out is None:
            return self.ready.output()
        attention.put(self.ready.target, out)
        return out

    def _take(self, keys: Any, values: Any) -> None:
        """Copy a row to where the work reads it, in its form if it has one."""
        if self.store.config.form is None:
            self.space.staged(self.codec.kept, keys, values, block=self.rows.keys)
        else:
            self.codec.encoded(self.space.staged(self.codec.plain, keys, values), self.rows.keys)

    def _demand(self, queries: Any, keys: Any, values: Any) -> None:
        """Refuse a layer that was freed, then rows that do not fit or have no room, then queries that do not
        fit."""
        if self.store.layers is not self.layers:
            raise refusals_attention.dropped("ATTN-22")
        self.store.demand_rows(keys, values, self.layer)
        demand(self.store.config, Fit((1,), 1, heads=self.heads), queries, self.how)
        demand(self.store.config, Fit((1,), rows_in(keys)), queries, self.how)
