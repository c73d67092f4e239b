"""The store on a device: all layers in one block, their lengths in another. The host knows the lengths too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from kvgpu.caches import mem
from kvgpu.caches.attention_store import Attending
from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import Fitting, acceptable, fitting, rows_in
from kvgpu.memory.layout import Place
from kvgpu.memory.row_groups import Layers
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Config, same_geometry
from kvspec.refusals import common as refusals


class Store(Attending):
    """`lengths_` is what the host knows of the lengths on the device: nothing is ever read back to know them."""

    kind = "store"

    def __init__(self, config: Config, space: Workspace) -> None:
        self._demand(config)
        self.config, self.space = config, space
        self._become(config, self._made(config))

    def _demand(self, config: Config) -> None:
        """Refuse a config that no store can have."""
        if config.layers is None or config.max_len is None or config.batch != 1 or not acceptable(config):
            raise refusals.config("CACHE-3", self.kind, config)
        row_forms.demand(config)

    def _made(self, config: Config) -> Layers:
        assert config.layers is not None
        return Layers(self.space, config, config.layers)

    def _become(self, config: Config, layers: Layers) -> None:
        assert config.max_len is not None
        self.config, self.layers, self.max_len = config, layers, config.max_len
        self.lengths_ = [0] * layers.groups
        self._fitting = {count: Fitting(config.changed(batch=count)) for count in (1, layers.groups)}

    def init(self, config: Config) -> None:
        """Leave everything as it is, or start again if the geometry differs: the old rows are freed after the new
        ones are made."""
        self._demand(config)
        if same_geometry(self.config, config):
            return
        made = self._made(config)
        self.free_batch()
        self.layers.release()
        self._become(config, made)

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        """Upload rows `[layers, kv_heads, n, dim]`, or `[1, ...]` of one layer, and write them behind lengths."""
        if rows_in(keys) == 0:
            return
        first, count = self.demand_rows(keys, values, layer)
        self._write(self.layers.staged(keys, values, count), first, count)

    def demand_rows(self, keys: Any, values: Any, layer: int | None) -> tuple[int, int]:
        """The first layer of an append, and the number of layers. Refuses rows that do not fit or have no room."""
        first, count = self._which(layer)
        if not self._fitting[count](keys, values):
            raise refusals.rows("CACHE-2", self._fitting[count].config, keys, values)
        self._demand_room(first, count, rows_in(keys))
        return first, count

    def _which(self, layer: int | None) -> tuple[int, int]:
        """The first layer, and the number of layers."""
        if layer is None:
            return 0, len(self.lengths_)
        if layer < 0 or layer >= len(self.lengths_):
            raise refusals.layer("STORE-9", layer, len(self.lengths_))
        return layer, 1

    def _demand_room(self, first: int, count: int, n: int) -> None:
        lengths = self.lengths_[first : first + count]
        if n > self.max_len - max(lengths):
            at = next(i for i, length in enumerate(lengths) if n > self.max_len - length)
            raise refusals.overflow("STORE-8", first + at, lengths[at], n, self.max_len)

    def plan(self, n: int) -> mem.Plan:
        """The bytes held, which an append of n rows to every layer does not change."""
        self._demand_room(0, len(self.lengths_), n)
        return self.held(), self.held()

    def held(self) -> int:
        """Bytes of all allocated rows, also of the batch."""
        return self.layers.nbytes + self.batch_bytes()

    def _write(self, source: Place, first: int, count: int) -> None:
        self.layers.place(source, first, count)
        n, behind = source.slots, slice(first, first + count)
        self.lengths_[behind] = [length + n for length in self.lengths_[behind]]

    def lengths(self) -> list[int]:
        """The length of each layer, as the host knows it."""
        return self.lengths_.copy()

    def read(self, layer: int) -> Pair:
        """Download the live rows of a layer, `[kv_heads, length, dim]`."""
        return Pair(*(a[0] for a in self.layers.read(layer, 1, self.lengths_[layer])))

    def set_length(self, layer: int, n: int) -> None:
        """Set the length of a layer; one launch."""
        first, _ = self._which(layer)
        if n < 0 or n > self.max_len:
            raise refusals.length("STORE-17", layer, n, self.max_len)
        self.layers.bound(first, 1, high=n, low=n)
        self.lengths_[first] = n

    def rollback(self, to: int) -> None:
        """Cut every layer that is longer to length `to`; always one launch."""
        if to < 0:
            raise refusals.rollback("STORE-15", to)
        self.layers.bound(0, len(self.lengths_), high=to)
        self.lengths_ = [min(n, to) for n in self.lengths_]

    def reset(self) -> None:
        """Every length to 0; one launch."""
        self.rollback(0)

    def zero(self) -> None:
        """Every length to 0, every row to zeros; two launches."""
        self.reset()
        self.layers.clear()

    def save(self) -> list[Pair]:
        """Download the live rows of all layers; neighbouring layers of equal length together."""
        saved: list[Pair] = []
        for n, run in groupby(self.lengths_):
            pair = self.layers.fetched(len(saved), len(list(run)), n)
            saved += [Pair(*(np.ascontiguousarray(a) for a in rows)) for rows in zip(*pair, strict=True)]
        return saved

    def load(self, saved: Sequence[Any]) -> None:
        """Upload such rows of all layers at once, padded with zeros to the longest; the slots beyond are zeroed
        too."""
        pairs = [Pair(*pair) for pair in saved]
        lengths = self._demand_saved(pairs)
        source = self._staged(pairs, max(lengths))
        self.zero()
        if source is not None:
            self.layers.put(source, 0, len(lengths))
        self.layers.set_lengths(lengths)
        self.lengths_ = lengths

    def _demand_saved(self, pairs: list[Pair]) -> list[int]:
        """Give the saved lengths, if everything fits."""
        if len(pairs) != len(self.lengths_):
            raise refusals.saved_layers("STORE-22", len(pairs), len(self.lengths_))
        for layer, pair in enumerate(pairs):
            if not fitting(self.config, pair.keys[None], pair.values[None]):
                raise refusals.saved_rows("STORE-22", layer, self.config, pair)
        lengths = [int(pair.keys.shape[1]) for pair in pairs]
        for layer, n in enumerate(lengths):
            if n > self.max_len:
                raise refusals.saved_length("STORE-23", layer, n, self.max_len)
        return lengths

    def _staged(self, pairs: list[Pair], n: int) -> Place | None:
        """The rows of all layers on the device, n of each."""
        if n == 0:
            return None
        config = self.config.changed(batch=len(pairs))
        padded = [np.zeros(config.shape(kind, n), DTYPES[config.dtype]) for kind in "kv"]
        for layer, pair in enumerate(pairs):
            for whole, rows in zip(padded, pair, strict=True):
                whole[layer, :, : rows.shape[1]] = rows
        return self.layers.staged(padded[0], padded[1], len(pairs))

    def fingerprint(self, position: int) -> float:
        """Download the one key row that it sums."""
        if position < 0 or position >= self.max_len:
            raise refusals.fingerprint("STORE-28", position, self.max_len)
        with np.errstate(all="ignore"):
            return float(self.layers.first_key(position).astype(np.float32).sum(dtype=np.float32))
