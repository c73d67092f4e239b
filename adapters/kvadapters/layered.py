"""Caches of several layers, from an engine's functions: `update` and `mask` take the number of a layer too.

The loop over the layers is a model's, and stands here: layers are updated one by one, and an update that raises
leaves the later ones as they were. A model has one number of layers, so that rows for another are refused before
the loop. The layers that see the rows of an encoder have their turn in it, and are given none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvadapters.update import Saved, UpdateCache
from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config

View = tuple[str, tuple[int, ...]]
"""What a layer is, and its sizes: `("window", (3,))`."""

ROWLESS = ("share", "cross")
"""Views of layers that appends give no rows."""


def views(config: Config, *known: str) -> list[View]:
    """Read what `of` says of each layer.

    Raises ValueError for a config that names no layers, another number of them, or a batch; Unsupported for a view
    that the engine does not know.
    """
    words = [word.split(":") for word in (config.of or "").split(",") if word]
    if not words or config.layers != sum(name not in ROWLESS for name, *_ in words) or config.batch != 1:
        raise ValueError(f"{config.layers} layers with rows in of={config.of}, a batch of {config.batch}")
    for name, *_ in words:
        if name not in known:
            raise Unsupported(f"no layer {name}")
    return [(name, tuple(int(size) for size in sizes)) for name, *sizes in words]


class LayeredCache(UpdateCache):
    """The caches of all layers, as the engine keeps them together, and what their last updates returned."""

    @property
    def queries(self) -> int:
        """The rows of the latest append; 0 once something else was done."""
        return self._queries

    @property
    def _names(self) -> list[str]:
        """The views of the layers, without their sizes."""
        return [word.partition(":")[0] for word in (self.config.of or "").split(",")]

    def append(self, keys: Array, values: Array) -> None:
        """Make the masks of all layers, then update them one by one, as a model does."""
        engine, names, n = self.engine, self._names, keys.shape[2]
        blocks = self._blocks(keys, values, [i for i, name in enumerate(names) if name not in ROWLESS])
        self._demand_room(n)
        masks = [engine.mask(self.cache, layer, n) for layer in range(len(names))] if engine.mask else []
        self._returned = [
            engine.update(self.cache, layer, *blocks[layer]) if layer in blocks else self._encoded(layer)
            for layer in range(len(names))
        ]
        self._held: list[Pair] | None = None
        self._mask, self._queries = masks, n
        self._took(keys, values)

    def _blocks(self, keys: Array, values: Array, layers: Sequence[int]) -> dict[int, list[Any]]:
        """The rows of these layers, as arrays of the engine. Raises ValueError for those of other layers."""
        if len(keys) != len(layers) or len(values) != len(layers):
            raise ValueError(f"rows of {len(keys)} and {len(values)} layers for {len(layers)} of the model")
        return {layer: [self._own(a[i : i + 1]) for a in (keys, values)] for i, layer in enumerate(layers)}

    def _encoded(self, layer: int) -> tuple[Any, Any]:
        """The rows of an encoder that a layer shows, as the engine keeps them."""
        found = self.engine.encoded(self.cache, layer) if self.engine.encoded else None
        if found is not None:
            return found
        one = self.config.changed(layers=None, of=None)
        keys, values = (self._own(np.zeros(one.shape(side, 0), DTYPES[one.dtype])) for side in "kv")
        return keys, values

    def encode(self, keys: Array, values: Array) -> None:
        """Hand the rows of an encoder to the layers that see them, one by one."""
        if self.engine.encode is None:
            raise Unsupported("no encode")
        blocks = self._blocks(keys, values, [i for i, name in enumerate(self._names) if name == "cross"])
        for layer, block in blocks.items():
            self.engine.encode(self.cache, layer, *block)
        self._queries = 0

    def histories(self) -> list[Pair]:
        """What the updates returned. At first these are their arrays, which are then the caller's. Later they are
        copies."""
        if self._held is not None:
            return [Pair(*(np.array(a) for a in block)) for block in self._held]
        self._held = [Pair(*(np.array(self.engine.from_engine(a)) for a in block)) for block in self._returned]
        return [Pair(*block) for block in self._returned]

    def states(self) -> dict[int, Any]:
        """The states of the layers that have one; zeros where the engine has made none yet."""
        config = self.config
        none = np.zeros((config.kv_heads, config.k_dim, config.v_dim), np.float32)
        found = self.engine.states(self.cache) if self.engine.states else {}
        return {layer: none if state is None else state for layer, state in found.items()}

    def mask(self, logical: Any = None) -> Array:
        """The masks that were made before the updates, side by side: `[layers, 1, n, the widest history]`."""
        widths = [keys.shape[2] for keys, _ in self._returned]
        found = np.zeros((len(widths), 1, self._queries, max(widths)), bool)
        for layer, (mask, width) in enumerate(zip(self._mask, widths, strict=True)):
            whole = self._whole(mask, width)
            columns = whole.shape[-1] if whole.shape[-1] > 1 else width  # attention repeats a single column
            found[layer, ..., :columns] = whole
        return found

    def _whole(self, mask: Any, width: int) -> Array:
        """A mask as an array, as wide as the engine made it. None hides nothing; a word is the kernel's."""
        if mask is None:
            return np.ones((self._queries, width), bool)
        if isinstance(mask, str):
            return np.tri(self._queries, width, width - self._queries, dtype=bool)
        array = np.array(self.engine.from_engine(mask))
        return array.reshape(array.shape[-2:])

    def rewind(self, to: int) -> None:
        """Trim the rows behind the target, in all layers."""
        super().rewind(to)
        self._queries = 0

    def restore(self, saved: Saved | None, to: int) -> None:
        """Put all layers back. Raises ValueError for those of another model, with which no engine is asked."""
        super().restore(saved, to)
        self._queries = 0

    def free(self) -> None:
        """Empty all layers."""
        super().free()
        self._queries = 0
