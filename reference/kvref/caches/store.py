"""The store: keys and values of many layers, allocated up front, and a length for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvref.abilities.attention_store import Attending
from kvref.cite import cite
from kvref.memory import forms, mem, meter
from kvref.memory.rows import count
from kvspec.contract import Pair
from kvspec.geometry import Array, Config, same_geometry
from kvspec.refusals import common as refusals
from kvspec.rows import fingerprint as sums


class Store(Attending):
    """Row p of head h of layer l is `keys[l][h, p]` and `values[l][h, p]`; it is live while p < `lengths_[l]`.

    Rows that were never written are zeros by the rule `zeroed_by`.
    """

    kind = "store"

    def __init__(self, config: Config) -> None:
        self._allocate(config, self._kept(config), "STORE-2")

    def _kept(self, config: Config) -> forms.Kept:
        """What is kept of rows by this config; refuses a config that no store has."""
        if not refusals.valid(config) or config.batch != 1 or None in (config.layers, config.max_len):
            raise refusals.config("CACHE-3", self.kind, config)
        return forms.Kept(config)

    def _allocate(self, config: Config, kept: forms.Kept, zeroed_by: str) -> None:
        """Make everything zero, because a length may be set beyond the rows that were written."""
        cite(zeroed_by)
        assert config.layers is not None and config.max_len is not None
        self.config, self.max_len, self.zeroed_by = config, config.max_len, zeroed_by
        self.kept = kept
        self.keys, self.values = (
            self._zeros(config.layers, (a.shape[1], config.max_len, a.shape[3]), a.dtype) for a in kept.none()
        )
        self.lengths_ = [0] * config.layers

    def _zeros(self, layers: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> list[Array]:
        """Zeros `[kv_heads, max_len, dim]` for each layer."""
        return [meter.zeros(shape, dtype) for _ in range(layers)]

    def init(self, config: Config) -> None:
        """Change nothing if the geometry is the same; else make a new store."""
        kept = self._kept(config)
        if same_geometry(config, self.config):
            cite("STORE-25")
            return
        self._end_batch()
        self._allocate(config, kept, "STORE-26")

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Write rows `[layers, kv_heads, n, dim]` behind the length of every layer, or `[1, ...]` of one."""
        new = Pair(keys, values)
        n = keys.shape[2] if keys.ndim == 4 else -1
        if n == 0:
            cite("CACHE-1")
            return
        layers = self.demand_rows(new, layer)
        cite("STORE-3" if layer is None else "STORE-4", "STORE-5")
        keys, values = self.kept.encoded(new)
        for i, each in enumerate(layers):
            self._write(each, self.lengths_[each], Pair(keys[i], values[i]))
            self.lengths_[each] += n

    def demand_rows(self, new: Pair, layer: int | None) -> Sequence[int]:
        """The layers meant; refuse rows that do not fit them, or have no room."""
        layers = self._layers(layer)
        config = self.config.changed(batch=len(layers))
        if not refusals.fits(config, new):
            raise refusals.rows("CACHE-2", config, *new)
        self._demand_room(layers, count(new))
        return layers

    def _demand_room(self, layers: Sequence[int], n: int) -> None:
        for each in layers:
            if self.lengths_[each] + n > self.max_len:
                raise refusals.overflow("STORE-8", each, self.lengths_[each], n, self.max_len)

    def plan(self, n: int) -> mem.Plan:
        """The bytes held, now and after an append of n rows to every layer."""
        if n > 0:
            self._demand_room(range(len(self.lengths_)), n)
        cite("MEM-18")
        return self.held(), self.held()

    def held(self) -> int:
        """Bytes of the rows of all layers, and of the batch where there is one."""
        batch = self.batch_bytes()
        cite("MEM-4" if batch == 0 else "MEM-19")
        self.kept.cite_bytes()
        return sum(a.nbytes for a in (*self.keys, *self.values)) + batch

    def _layers(self, layer: int | None) -> Sequence[int]:
        """One layer, or all."""
        if layer is None:
            return range(len(self.lengths_))
        self._in_range(layer)
        return [layer]

    def _in_range(self, layer: int) -> None:
        if not 0 <= layer < len(self.lengths_):
            raise refusals.layer("STORE-9", layer, len(self.lengths_))

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        """Put rows `[kv_heads, n, dim]`, as they are kept, into a layer from position `at` on."""
        end = at + rows.keys.shape[1]
        meter.write(self.keys[layer][:, at:end], rows.keys)
        meter.write(self.values[layer][:, at:end], rows.values)

    def lengths(self) -> list[int]:
        """The length of each layer."""
        return list(self.lengths_)

    def read(self, layer: int) -> Pair:
        """Copies of the live rows of a layer, `[kv_heads, length, dim]`."""
        live = slice(0, self.lengths_[layer])
        kept = Pair(*(meter.fetched(a[layer][:, live]) for a in (self.keys, self.values)))
        return self.kept.decoded(kept)

    def set_length(self, layer: int, n: int) -> None:
        """Set the length of a layer; no row moves or changes."""
        self._in_range(layer)
        if not 0 <= n <= self.max_len:
            raise refusals.length("STORE-17", layer, n, self.max_len)
        cite("STORE-16", *([self.zeroed_by] if n > self.lengths_[layer] else []))
        self.lengths_[layer] = n

    def rollback(self, to: int) -> None:
        """Lower the length of every longer layer to `to`."""
        if to < 0:
            raise refusals.rollback("STORE-15", to)
        cite("STORE-14", "STORE-16")
        self.lengths_ = [min(n, to) for n in self.lengths_]

    def reset(self) -> None:
        """Every length to 0; the rows stay."""
        cite("STORE-12")
        self.lengths_ = [0] * len(self.lengths_)

    def zero(self) -> None:
        """Every length to 0, every row to zeros."""
        self._clear("STORE-13")

    def _clear(self, zeroed_by: str) -> None:
        cite(zeroed_by)
        self.zeroed_by = zeroed_by
        self.lengths_ = [0] * len(self.lengths_)
        for array in (*self.keys, *self.values):
            array[...] = 0

    def save(self) -> list[Pair]:
        """The live rows of each layer, contiguous, on the host."""
        cite("STORE-18", "STORE-19")
        return [self.read(layer) for layer in range(len(self.lengths_))]

    def load(self, saved: Sequence[Pair]) -> None:
        """Such rows back; beyond them zeros."""
        self._loadable(saved)
        cite("STORE-20", "STORE-24")
        self._clear("STORE-21")
        for layer, pair in enumerate(self._rounded(saved)):
            self._write(layer, 0, pair)
            self.lengths_[layer] = pair.keys.shape[1]

    def _rounded(self, saved: Sequence[Pair]) -> list[Pair]:
        """Saved rows as they are kept."""
        cite(*["ROW-18"] * (self.config.form is not None and any(pair.keys.size for pair in saved)))
        return [self.kept.encoded(pair, quiet=True) for pair in saved]

    def _loadable(self, saved: Sequence[Pair]) -> None:
        """Refuse other layers, heads, widths or dtypes than the store's, before anything is written."""
        if len(saved) != len(self.lengths_):
            raise refusals.saved_layers("STORE-22", len(saved), len(self.lengths_))
        for layer, pair in enumerate(saved):
            if not refusals.fits(self.config, Pair(*(a[None] for a in pair))):
                raise refusals.saved_rows("STORE-22", layer, self.config, pair)
        for layer, n in enumerate(pair.keys.shape[1] for pair in saved):
            if n > self.max_len:
                raise refusals.saved_length("STORE-23", layer, n, self.max_len)

    def fingerprint(self, position: int) -> float:
        """The sum over the key row of layer 0, head 0, at a position, live or not."""
        if not 0 <= position < self.max_len:
            raise refusals.fingerprint("STORE-28", position, self.max_len)
        cite("STORE-27", *([] if position < self.lengths_[0] else ["STORE-16", self.zeroed_by]))
        row = meter.fetched(self.keys[0][:1, position : position + 1])
        return sums.exact(self.kept.decoded(Pair(row, self.values[0][:1, :0])).keys[0, 0])
