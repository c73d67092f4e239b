"""A store that is a list of rows for each layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hostile.attacks.designs.rows import Row, arrays_of, check, demand, rows_of
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config, fits


class ListStore:
    """A store that is a list of rows for each layer; a length may lie beyond the rows, which are zeros there."""

    kind = "store"

    def __init__(self, config: Config) -> None:
        check(config, "layers", "max_len")
        demand(config.batch == 1, "a store of one sequence")
        self.config, self.room = config, config.max_len or 0
        self.zero()

    def init(self, config: Config) -> None:
        """Anew, if the geometry is another."""
        if config.changed(step=0) != self.config.changed(step=0):
            self.__init__(config)  # type: ignore[misc]

    def zero(self) -> None:
        """Nothing is held."""
        self.rows: list[dict[int, Row]] = [{} for _ in range(self.config.layers or 0)]
        self.reset()

    def reset(self) -> None:
        """Lengths of 0."""
        self.ends = [0] * (self.config.layers or 0)

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Write behind the length of each layer, or of one."""
        if keys.ndim == 4 and keys.shape[2] == 0:
            return
        layers = range(len(self.ends)) if layer is None else [layer]
        demand(all(0 <= each < len(self.ends) for each in layers), "no such layer")
        demand(fits(self.config.changed(batch=len(layers)), Pair(keys, values)), "rows of another geometry")
        demand(all(self.ends[each] + keys.shape[2] <= self.room for each in layers), "no room")
        for i, each in enumerate(layers):
            self._put(each, self.ends[each], Pair(keys[i], values[i]))

    def _put(self, layer: int, at: int, pair: Pair) -> None:
        rows = rows_of(pair)
        self.rows[layer] |= {at + i: row for i, row in enumerate(rows)}
        self.ends[layer] = at + len(rows)

    def lengths(self) -> list[int]:
        """The length of each layer."""
        return list(self.ends)

    def read(self, layer: int) -> Pair:
        """The rows of a layer."""
        return arrays_of((self._row(layer, p) for p in range(self.ends[layer])), self.config)

    def _row(self, layer: int, position: int) -> Row:
        dims, dtype = (self.config.k_dim, self.config.v_dim), DTYPES[self.config.dtype]
        empty = Row(*(np.zeros((self.config.kv_heads, dim), dtype) for dim in dims))
        return self.rows[layer].get(position, empty)

    def set_length(self, layer: int, n: int) -> None:
        """Say how long a layer is."""
        demand(0 <= layer < len(self.ends) and 0 <= n <= self.room, "no such length")
        self.ends[layer] = n

    def rollback(self, to: int) -> None:
        """Shorten what is longer."""
        demand(to >= 0, "below 0")
        self.ends = [min(end, to) for end in self.ends]

    def save(self) -> list[Pair]:
        """Copies of all layers."""
        return [self.read(layer) for layer in range(len(self.ends))]

    def load(self, saved: Sequence[Pair]) -> None:
        """Copies back."""
        demand(len(saved) == len(self.ends), "other layers")
        demand(all(fits(self.config, Pair(*(a[None] for a in pair))) for pair in saved), "other rows")
        demand(all(pair[0].shape[1] <= self.room for pair in saved), "no room")
        self.zero()
        for layer, pair in enumerate(saved):
            self._put(layer, 0, pair)

    def fingerprint(self, position: int) -> float:
        """The sum of a key row."""
        demand(0 <= position < self.room, "no such position")
        with np.errstate(all="ignore"):
            return float(np.sum(self._row(0, position).key[0].astype(np.float64)))
