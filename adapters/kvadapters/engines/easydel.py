"""EasyDeL: a `TransformerCache` of one sequence as a store, and one of several sequences as its batch.

A prompt is prefilled in a cache of its own, which is then inserted into a place of the batch. So does a scatter,
with a copy that is told its number of rows. All arrays are JAX's, on a CPU. Each operation makes new ones.
EasyDeL counts nothing: rows beyond the end, and most sequences, are its caller's to count.
"""

from __future__ import annotations

import numpy as np

from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import DTYPES, Array, Config, fits, valid

try:
    import easydel
    import jax
    from easydel.caching.transformer.cache import TransformerCache, TransformerCacheConfig
    from easydel.layers.quantization._quants import EasyQuantizer
    from eformer.common_types import MODE_PREFILL
    from eformer.escale import PartitionAxis, PartitionManager
    from ejkernel.types import MaskInfo
except ImportError as e:
    raise CannotRun(f"EasyDeL cannot be imported ({e}); pip install 'kvconform[easydel]'") from e

AXES = ("dp", "fsdp", "ep", "tp", "sp")
MESH = jax.make_mesh((1,) * 5, AXES, axis_types=(jax.sharding.AxisType.Auto,) * 5)
PLACES, PLAIN = PartitionManager(PartitionAxis()), EasyQuantizer(quantization_config=None)


class Sequences:
    """A cache of several sequences."""

    def __init__(self, config: Config, sequences: int) -> None:
        self.number = sequences
        heads = {"key_heads": config.kv_heads, "value_heads": config.kv_heads}
        widths = {"key_dim": config.k_dim, "value_dim": config.v_dim}
        sizes = TransformerCacheConfig.create(sequences, config.max_len, config.layers, **heads, **widths)
        with MESH:
            self.cache = TransformerCache.init_cache(MESH, sizes, PLACES, dtype=DTYPES[config.dtype])

    def lengths(self) -> list[list[int]]:
        """What each layer says of each sequence."""
        return [np.asarray(view.indexs).tolist() for view in self.cache.views]

    def update(self, layer: int, keys: Array, values: Array) -> None:
        """Give a layer rows `[sequences, kv_heads, n, dim]`, behind those of each sequence."""
        new = [jax.numpy.asarray(a.swapaxes(1, 2)) for a in (keys, values)]
        mask = MaskInfo.from_segments(jax.numpy.ones(new[0].shape[:2], jax.numpy.int32))
        views = self.cache.views
        with MESH:
            made = views[layer].concatenate_to_cache(new[0], *new, MODE_PREFILL, PLAIN, None, mask, PLACES)
        views[layer] = made[3]

    def told(self, sequence: int, n: int) -> None:
        """Tell all layers how many rows a sequence has."""
        with MESH:
            self.cache = self.cache.insert_index(jax.numpy.int32(n), sequence, PLACES)

    def cut(self, sequence: int, to: int) -> None:
        """Tell them of fewer rows."""
        self.told(sequence, min(to, self.lengths()[0][sequence]))

    def insert(self, other: Sequences, place: int) -> None:
        """Copy the cache of one sequence into a place."""
        with MESH:
            self.cache = self.cache.insert(other.cache, place, PLAIN, PLACES)

    def rows(self, layer: int, sequence: int) -> Pair:
        """Those of a sequence, `[kv_heads, n, dim]`."""
        view = self.cache.views[layer]
        n = int(view.indexs[sequence])
        return Pair(*(np.asarray(a[sequence, :n]).swapaxes(0, 1) for a in (view.key, view.value)))


class Store:
    """A cache of one sequence, and where there is one its batch."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or not config.layers or not config.max_len or config.batch != 1:
            raise ValueError(f"no store of {config}")
        self.config, self.layers = config, config.layers
        self.batched: Sequences | None = None
        self.zero()

    def zero(self) -> None:
        """Make a new cache."""
        self.one = Sequences(self.config, 1)

    def lengths(self) -> list[int]:
        """Those of the layers."""
        return [of[0] for of in self.one.lengths()]

    def read(self, layer: int) -> Pair:
        """The rows of a layer."""
        return self.one.rows(layer, 0)

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Update all layers one by one, as a model does. Raises ValueError for rows that no projection makes."""
        if layer is not None:
            raise Unsupported("a model updates all layers")
        if not keys.shape[2]:
            return
        self._demand(keys, values)
        for each in range(self.layers):
            self.one.update(each, keys[each : each + 1], values[each : each + 1])

    def _demand(self, keys: Array, values: Array) -> None:
        if not fits(self.config.changed(batch=self.layers), Pair(keys, values)):
            raise ValueError(f"rows {keys.shape} and {values.shape} of {keys.dtype}")

    def rollback(self, to: int) -> None:
        """Tell all layers of fewer rows."""
        if to < 0:
            raise ValueError(f"a length of {to}")
        self.one.cut(0, to)

    def reset(self) -> None:
        """Tell them of none."""
        self.one.told(0, 0)

    def batch(self, m: int, most: int | None = None) -> None:
        """Make a cache of m sequences."""
        self.batched = Sequences(self.config, m)

    def there(self) -> Sequences:
        """The batch. Raises ValueError where there is none."""
        if self.batched is None:
            raise ValueError("no batch")
        return self.batched

    def sequences(self) -> list[int] | None:
        """The length of each sequence, by the first layer."""
        return None if self.batched is None else self.batched.lengths()[0]

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """The rows of a sequence in a layer."""
        return self.there().rows(layer, sequence)

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Insert a copy with so many rows."""
        if layer is not None:
            raise Unsupported("an insertion is of all layers")
        batch, length = self.there(), self.lengths()[0]
        self.one.told(0, n)
        batch.insert(self.one, sequence)
        self.one.told(0, length)

    def step(self, keys: Array, values: Array) -> None:
        """Update all layers with a row of each sequence."""
        batch = self.there()
        if keys.ndim != 4 or keys.shape[:2] != (self.layers, batch.number):
            raise ValueError(f"rows {keys.shape} for {self.layers} layers and {batch.number} sequences")
        self._demand(keys.swapaxes(1, 2), values.swapaxes(1, 2))
        for each in range(self.layers):
            batch.update(each, keys[each][:, :, None], values[each][:, :, None])

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Tell all layers of fewer rows of a sequence."""
        batch = self.there()
        if to < 0:
            raise ValueError(f"a length of {to}")
        if sequence not in range(batch.number):
            raise ValueError(f"no sequence {sequence}")
        batch.cut(sequence, to)

    def reset_batch(self) -> None:
        """Tell them of none, of each sequence."""
        batch = self.there()
        for sequence in range(batch.number):
            batch.told(sequence, 0)

    def free_batch(self) -> None:
        """Drop the cache."""
        self.batched = None


STORE = {"with": ["read", "zero", "rollback", "reset"]}
BATCH = {"level": "visible", "with": ["batch", "scatter", "step", "resetbatch", "freebatch"]}
batch = OneKind("easydel-batch", "store", Store, STORE, {"version": easydel.__version__}, {"batch": BATCH})
