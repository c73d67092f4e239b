"""The storage axis of a cache: key and value rows side by side, so that no step can move one without the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config


class Rows:
    """Allocated slots of keys `[B, H, S, k_dim]` and values `[B, H, S, v_dim]`; slot s of both is one position."""

    def __init__(self, config: Config) -> None:
        dtype = DTYPES[config.dtype]
        self.keys: Array = np.empty(config.shape("k", 0), dtype)
        self.values: Array = np.empty(config.shape("v", 0), dtype)

    def __len__(self) -> int:
        return int(self.keys.shape[2])

    def write(self, slot: int, new: Pair) -> None:
        """Put new rows into the slots from `slot` on."""
        end = slot + new.keys.shape[2]
        self.keys[:, :, slot:end] = new.keys
        self.values[:, :, slot:end] = new.values

    def keep(self, start: int, stop: int) -> None:
        """Cut down to the slots start..stop-1."""
        self.keys, self.values = self.keys[:, :, start:stop], self.values[:, :, start:stop]

    def join(self, new: Pair) -> None:
        """Add rows behind the last slot."""
        self.keys = np.concatenate([self.keys, new.keys], axis=2)
        self.values = np.concatenate([self.values, new.values], axis=2)

    def grow(self, n: int) -> None:
        """Add n slots behind the last; what they hold is nobody's business, so they hold NaN."""
        self.join(Pair(_nan(self.keys, n), _nan(self.values, n)))

    def turn(self, first: int) -> None:
        """Renumber the slots so that slot `first` becomes slot 0."""
        self.keys, self.values = np.roll(self.keys, -first, axis=2), np.roll(self.values, -first, axis=2)

    def copy(self, start: int, stop: int) -> Pair:
        """Copies of the rows in slots start..stop-1."""
        return Pair(self.keys[:, :, start:stop].copy(), self.values[:, :, start:stop].copy())


def _nan(like: Array, n: int) -> Array:
    batch, heads, _, dim = like.shape
    return np.full((batch, heads, n, dim), np.nan, like.dtype)


def count(pair: Pair) -> int:
    """Positions a pair holds."""
    return int(pair.keys.shape[2])


def joined(first: Pair, second: Pair) -> Pair:
    """The rows of one pair, then those of another."""
    axes: Any = zip(first, second, strict=True)
    return Pair(*(np.concatenate(both, axis=2) for both in axes))
