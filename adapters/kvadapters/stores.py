"""Stores from an engine's functions: `make` opens the caches of all layers, and others take the number of one.

The loop over the layers is a model's, and stands here. Rows that no projection of the model makes are refused
before it. What an engine does with rows for which a layer has no room is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config, fits


@dataclass(frozen=True)
class StoreFunctions:
    """What an engine's caches of many layers offer."""

    make: Callable[[Config], Any]
    """Make the caches of all layers. Raises ValueError for sizes that no model has."""
    update: Callable[[Any, int, Any, Any], Any]
    """Append rows `[1, kv_heads, n, dim]` to a layer."""
    length: Callable[[Any, int], Any]
    """Tell the length of a layer."""
    buffers: Callable[[Any, int], tuple[Any, Any] | None]
    """Give the keys and the values of a layer, `[1, kv_heads, max_len, dim]`; None where it has none yet."""
    to_engine: Callable[[Array], Any]
    from_engine: Callable[[Any], Array]
    zero: Callable[[Any], Any]
    """Clear the rows of all layers, and their lengths."""
    trim: Callable[[Any, int, int], Any] | None = None
    """Drop the newest rows of a layer."""


class StoreOf:
    """The caches of all layers of a model."""

    def __init__(self, adapter: StoreAdapter, config: Config) -> None:
        if not config.layers or not config.max_len or config.batch != 1:
            raise ValueError(f"no store of {config}")
        self.engine, self.config = adapter.engine, config
        self.cache = self.engine.make(config)

    def lengths(self) -> list[int]:
        """Ask the engine for the length of each layer."""
        return [int(self.engine.length(self.cache, layer)) for layer in range(self.config.layers or 0)]

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        """Update all layers one by one, as a model does, or one."""
        new = Pair(*(a if isinstance(a, np.ndarray) else self.engine.from_engine(a) for a in (keys, values)))
        layers = range(self.config.layers or 0) if layer is None else [layer]
        if not keys.shape[2]:
            return
        if not set(layers) <= set(range(self.config.layers or 0)):
            raise ValueError(f"no layer {layer}")
        if not fits(self.config.changed(batch=len(layers)), new):
            raise ValueError(f"rows {new.keys.shape} and {new.values.shape} of {new.keys.dtype}")
        blocks = [[self._own(a[i : i + 1]) for a in (keys, values)] for i in range(len(layers))]
        for each, block in zip(layers, blocks, strict=True):
            self.engine.update(self.cache, each, *block)

    def _own(self, array: Any) -> Any:
        """An array of the engine."""
        return self.engine.to_engine(array) if isinstance(array, np.ndarray) else array

    def read(self, layer: int) -> Pair:
        """Read the rows of a layer below its length, from its buffers."""
        n, found = self.lengths()[layer], self.engine.buffers(self.cache, layer)
        shapes = [self.config.shape(side, 0)[1:] for side in "kv"]
        if found is None:
            return Pair(*(np.zeros(shape, DTYPES[self.config.dtype]) for shape in shapes))
        return Pair(*(np.array(self.engine.from_engine(a)[0, :, :n]) for a in found))

    def rollback(self, to: int) -> None:
        """Trim each layer that is longer."""
        if self.engine.trim is None:
            raise Unsupported("no trim")
        if to < 0:
            raise ValueError(f"a length of {to}")
        for layer, length in enumerate(self.lengths()):
            if length > to:
                self.engine.trim(self.cache, layer, length - to)

    def zero(self) -> None:
        """Clear all layers."""
        self.engine.zero(self.cache)


@dataclass(frozen=True)
class StoreAdapter:
    """The adapter: opens stores."""

    name: str
    engine: StoreFunctions
    said: Mapping[str, Any] = field(default_factory=dict)
    also: Sequence[str] = ()

    def describe(self) -> dict[str, Any]:
        """Claim what the functions offer, and nothing else."""
        rollback = ["rollback"] if self.engine.trim else []
        chapters = {"store": {"level": "visible", "with": ["zero", "read", "full", "apart", *rollback, *self.also]}}
        return {"name": self.name, "chapters": chapters, **self.said}

    def to_engine(self, array: Array) -> Any:
        """Make an array of the engine."""
        return self.engine.to_engine(array)

    def from_engine(self, array: Any) -> Array:
        """Give the elements of an array of the engine."""
        return np.asarray(self.engine.from_engine(array))

    def open(self, kind: str, config: Config) -> StoreOf:
        """Open a fresh store."""
        if kind != "store":
            raise Unsupported(f"no kind {kind}")
        return StoreOf(self, config)
