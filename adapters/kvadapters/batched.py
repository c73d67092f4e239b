"""Stores whose rows are of all layers, and their batches: what adapters of the chapters STORE and BATCH share.

An engine has *sequences*: something of its own that a forward pass goes over. The store is such a thing of one
sequence, and a batch is one of several.
"""

from __future__ import annotations

from typing import Any

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config, fits, valid


class Batched:
    """A store, `one`, and where there is a batch `many`. A class derived from it says what the engine does."""

    one: Any
    many: Any = None

    def __init__(self, config: Config) -> None:
        if not valid(config) or not config.layers or not config.max_len or config.batch != 1:
            raise ValueError(f"no store of {config}")
        self.config, self.layers = config, config.layers

    def made(self, m: int) -> Any:
        """Make m sequences of no rows."""
        raise NotImplementedError

    def counted(self, of: Any) -> list[int]:
        """The rows of each of these sequences."""
        raise NotImplementedError

    def forward(self, of: Any, keys: Array, values: Array) -> None:
        """Do a forward pass over rows `[layers, sequences, kv_heads, n, dim]`."""
        raise NotImplementedError

    def rows(self, of: Any, layer: int, sequence: int) -> Pair:
        """Those of a sequence in a layer, `[kv_heads, n, dim]`."""
        raise NotImplementedError

    def cut(self, of: Any, sequence: int, to: int) -> None:
        """Drop the rows of a sequence from there on. It has as many, or more."""
        raise NotImplementedError

    def copied(self, sequence: int, n: int) -> None:
        """Have the first n rows of the store in a place of the batch, if there is such a place."""
        raise NotImplementedError

    def lengths(self) -> list[int]:
        """The rows of the store, which are as many in each layer."""
        (length,) = self.counted(self.one)
        return [length] * self.layers

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Do a forward pass. Raises ValueError for rows that no projection of this model makes."""
        _demand_all(layer)
        if keys.shape[2]:
            self._demand(keys, values)
            self.forward(self.one, keys[:, None], values[:, None])

    def _demand(self, keys: Array, values: Array) -> None:
        if not fits(self.config.changed(batch=self.layers), Pair(keys, values)):
            raise ValueError(f"rows {keys.shape} and {values.shape} of {keys.dtype}")

    def read(self, layer: int) -> Pair:
        """The rows of a layer."""
        return self.rows(self.one, layer, 0)

    def rollback(self, to: int) -> None:
        """Drop rows of the store."""
        self._cut(self.one, 0, to)

    def _cut(self, of: Any, sequence: int, to: int) -> None:
        if to < 0:
            raise ValueError(f"a length of {to}")
        self.cut(of, sequence, min(to, self.counted(of)[sequence]))

    def reset(self) -> None:
        """Drop them all."""
        self.rollback(0)

    def batch(self, m: int, most: int | None = None) -> None:
        """Make a batch in the place of the one before."""
        self.free_batch()
        self.many = self.made(m)

    def free_batch(self) -> None:
        """Forget the batch."""
        self.many = None

    def there(self) -> Any:
        """The batch. Raises ValueError if there is none."""
        if self.many is None:
            raise ValueError("no batch")
        return self.many

    def place(self, sequence: int) -> int:
        """A place of the batch. Raises ValueError if there is none of this number."""
        if sequence not in range(len(self.counted(self.there()))):
            raise ValueError(f"no place {sequence}")
        return sequence

    def sequences(self) -> list[int] | None:
        """The length of each place."""
        return None if self.many is None else self.counted(self.many)

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """The rows of a place."""
        return self.rows(self.there(), layer, self.place(sequence))

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Copy the first rows of the store into a place."""
        _demand_all(layer)
        self.there()
        self.copied(sequence, n)

    def step(self, keys: Array, values: Array) -> None:
        """Do a forward pass of all places, with a row of each."""
        m = len(self.counted(self.there()))
        if keys.ndim != 4 or keys.shape[:2] != (self.layers, m):
            raise ValueError(f"rows {keys.shape} for {self.layers} layers and {m} places")
        self._demand(keys.swapaxes(1, 2), values.swapaxes(1, 2))
        self.forward(self.there(), *(a[:, :, :, None] for a in (keys, values)))

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Drop rows of a place."""
        self._cut(self.there(), self.place(sequence), to)

    def reset_batch(self) -> None:
        """Drop all rows of all places."""
        for place in range(len(self.counted(self.there()))):
            self._cut(self.there(), place, 0)


def _demand_all(layer: int | None) -> None:
    if layer is not None:
        raise Unsupported("a pass is of all layers")
