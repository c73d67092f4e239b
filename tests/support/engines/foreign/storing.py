"""STORE and BATCH over dictionaries: a row is an entry under its layer and its position.

Written from the text of the chapters alone. What was never written has no entry, and reads as zeros. A place of a
batch is a list of rows for each layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign.demands import want, want_rows, want_sizes

Row = tuple[Any, Any]
"""A key `[kv_heads, k_dim]` and a value `[kv_heads, v_dim]`."""


def geometry(config: Any) -> tuple[Any, ...]:
    """What makes a store another store."""
    return config.layers, config.max_len, config.kv_heads, config.k_dim, config.v_dim, config.dtype


class Store:
    """A store, and its batch."""

    def __init__(self, config: Any) -> None:
        self.config: Any = None
        self.init(config)

    def init(self, config: Any) -> None:
        """Begin anew, if the geometry is another."""
        want_sizes(config, "layers", "max_len")
        want(config.batch == 1, f"batch {config.batch}")
        if self.config is not None and geometry(config) == geometry(self.config):
            return
        self.config, self.rows = config, dict[tuple[int, int], Row]()
        self.length = [0] * config.layers
        self.free_batch()

    def stacked(self, rows: Sequence[Row]) -> Pair:
        """Rows as arrays `[kv_heads, n, dim]`."""
        config = self.config
        shapes = ((config.kv_heads, 0, dim) for dim in (config.k_dim, config.v_dim))
        sides = list(zip(*rows, strict=True)) or [(), ()]
        return Pair(
            *(
                np.stack(side, 1) if side else np.zeros(shape, DTYPES[config.dtype])
                for side, shape in zip(sides, shapes, strict=True)
            )
        )

    def row(self, layer: int, position: int) -> Row:
        """The row at a position, live or not."""
        blank = (
            np.zeros((self.config.kv_heads, d), DTYPES[self.config.dtype])
            for d in (self.config.k_dim, self.config.v_dim)
        )
        return self.rows.get((layer, position)) or (next(blank), next(blank))

    def layer(self, layer: int) -> int:
        """A layer that there is."""
        want(0 <= layer < self.config.layers, f"no layer {layer}")
        return layer

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        """Write rows behind each layer."""
        if keys.shape[2] == 0:
            return
        layers = range(self.config.layers) if layer is None else [self.layer(layer)]
        want_rows(self.config, keys, values, len(layers))
        n = keys.shape[2]
        want(all(self.length[x] + n <= self.config.max_len for x in layers), "no room")
        for i, x in enumerate(layers):
            for j in range(n):
                self.rows[x, self.length[x] + j] = keys[i, :, j].copy(), values[i, :, j].copy()
            self.length[x] += n

    def lengths(self) -> list[int]:
        """The length of each layer."""
        return list(self.length)

    def live(self, layer: int) -> list[Row]:
        """The live rows of a layer."""
        return [self.row(layer, p) for p in range(self.length[layer])]

    def read(self, layer: int) -> Pair:
        """The same as arrays."""
        return self.stacked(self.live(layer))

    def set_length(self, layer: int, n: int) -> None:
        """Set a length."""
        want(0 <= n <= self.config.max_len, f"length {n}")
        self.length[self.layer(layer)] = n

    def rollback(self, to: int) -> None:
        """Lower every length."""
        want(to >= 0, f"rollback to {to}")
        self.length = [min(n, to) for n in self.length]

    def reset(self) -> None:
        """Every length is 0."""
        self.rollback(0)

    def zero(self) -> None:
        """And no row is there."""
        self.reset()
        self.rows.clear()

    def save(self) -> list[Pair]:
        """The live rows of all layers."""
        return [self.read(x) for x in range(self.config.layers)]

    def load(self, saved: Sequence[Pair]) -> None:
        """Put them back."""
        want(len(saved) == self.config.layers, f"{len(saved)} layers")
        for pair in saved:
            want_rows(self.config, *pair)
            want(pair.keys.shape[1] <= self.config.max_len, "no room")
        self.zero()
        for x, (keys, values) in enumerate(saved):
            self.append(keys[None], values[None], x)

    def fingerprint(self, position: int) -> float:
        """The sum of the first key there."""
        want(0 <= position < self.config.max_len, f"position {position}")
        total = np.float32(0)
        with np.errstate(all="ignore"):
            for x in self.row(0, position)[0][0]:
                total = np.float32(total + np.float32(x))
        return float(total)

    def batch(self, m: int, most: int | None = None) -> None:
        """m places without rows; the memory is new if it has to be."""
        want(1 <= m <= (32 if most is None else most), f"{m} sequences")
        if m > self.allocated:
            self.allocated, self.memory = m, object()
        self.places: list[list[list[Row]]] | None = [[[] for _ in range(self.config.layers)] for _ in range(m)]
        self.long = [0] * m

    def free_batch(self) -> None:
        """No batch, and no memory of one."""
        self.places, self.long, self.allocated, self.memory = None, [], 0, object()

    def there(self) -> list[list[list[Row]]]:
        """The places of the batch that there must be."""
        want(self.places is not None, "no batch")
        return self.places or []

    def sequences(self) -> list[int] | None:
        """The length of each sequence."""
        return None if self.places is None else list(self.long)

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """What a layer holds of a sequence."""
        return self.stacked(self.there()[sequence][layer])

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Copy the store's first rows; what other layers hold beyond them is dropped."""
        want(0 <= sequence < len(self.there()), f"no sequence {sequence}")
        layers = range(self.config.layers) if layer is None else [self.layer(layer)]
        want(n >= 0 and all(n <= self.length[x] for x in layers), f"{n} rows")
        place = self.there()[sequence]
        for x in range(self.config.layers):
            place[x] = self.live(x)[:n] if x in layers else place[x][:n]
        self.long[sequence] = n

    def step(self, keys: Any, values: Any) -> None:
        """A row for each sequence in each layer."""
        places, config = self.there(), self.config
        for array, dim in ((keys, config.k_dim), (values, config.v_dim)):
            want(array.shape == (config.layers, len(places), config.kv_heads, dim), f"rows are {array.shape}")
            want(array.dtype == DTYPES[config.dtype], f"rows are {array.dtype}")
        for place, n in zip(places, self.long, strict=True):
            want(n < config.max_len and all(len(rows) == n for rows in place), "no room, or rows are missing")
        for s, place in enumerate(places):
            for x, rows in enumerate(place):
                rows.append((keys[x, s].copy(), values[x, s].copy()))
            self.long[s] += 1

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Cut a sequence."""
        want(0 <= sequence < len(self.there()) and to >= 0, f"sequence {sequence} to {to}")
        self.there()[sequence][:] = [rows[:to] for rows in self.there()[sequence]]
        self.long[sequence] = min(self.long[sequence], to)

    def reset_batch(self) -> None:
        """Cut all of them."""
        for s in range(len(self.there())):
            self.rollback_sequence(s, 0)

    def capture(self) -> Captured:
        """A step to be done again."""
        return Captured(self, len(self.there()))


class Captured:
    """A step on the memory that the batch has now."""

    def __init__(self, store: Store, m: int) -> None:
        self.store, self.m, self.memory = store, m, store.memory

    def replay(self, keys: Any, values: Any) -> None:
        """Step, if the memory and the number of sequences are the same."""
        want(self.store.memory is self.memory and len(self.store.there()) == self.m, "captured for another batch")
        self.store.step(keys, values)


class Dictionaries:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "dictionaries", "chapters": {"store": "visible", "batch": "visible"}}

    def open(self, kind: str, config: Any) -> Store:
        """A fresh store."""
        if kind != "store":
            raise Unsupported(f"no kind {kind}")
        return Store(config)
