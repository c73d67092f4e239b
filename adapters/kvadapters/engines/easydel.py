"""EasyDeL: a `TransformerCache` of one sequence as a store, and one of several sequences as its batch.

A prompt is prefilled in a cache of its own, which is then inserted into a place of the batch. So does a scatter,
with a copy that is told its number of rows. All arrays are JAX's, on a CPU. Each operation makes new ones.
EasyDeL counts nothing: rows beyond the end, and most sequences, are its caller's to count.
"""

from __future__ import annotations

import numpy as np

from kvadapters.batched import Batched
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

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

    def insert(self, other: Sequences, place: int) -> None:
        """Copy the cache of one sequence into a place."""
        with MESH:
            self.cache = self.cache.insert(other.cache, place, PLAIN, PLACES)

    def rows(self, layer: int, sequence: int) -> Pair:
        """Those of a sequence, `[kv_heads, n, dim]`."""
        view = self.cache.views[layer]
        n = int(view.indexs[sequence])
        return Pair(*(np.asarray(a[sequence, :n]).swapaxes(0, 1) for a in (view.key, view.value)))


class Store(Batched):
    """A cache of one sequence, and where there is one its batch."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.zero()

    def zero(self) -> None:
        """Make a new cache."""
        self.one = self.made(1)

    def made(self, m: int) -> Sequences:
        """Make a cache of m sequences."""
        return Sequences(self.config, m)

    def counted(self, of: Sequences) -> list[int]:
        """What the first layer says."""
        return of.lengths()[0]

    def lengths(self) -> list[int]:
        """What each layer says."""
        return [layer[0] for layer in self.one.lengths()]

    def forward(self, of: Sequences, keys: Array, values: Array) -> None:
        """Update all layers one by one, as a model does."""
        for layer in range(self.layers):
            of.update(layer, keys[layer], values[layer])

    def rows(self, of: Sequences, layer: int, sequence: int) -> Pair:
        """Those of a sequence."""
        return of.rows(layer, sequence)

    def cut(self, of: Sequences, sequence: int, to: int) -> None:
        """Tell all layers of fewer rows."""
        of.told(sequence, to)

    def copied(self, sequence: int, n: int) -> None:
        """Insert a copy with so many rows."""
        length = self.lengths()[0]
        self.one.told(0, n)
        self.there().insert(self.one, sequence)
        self.one.told(0, length)


STORE = {"with": ["read", "zero", "rollback", "reset"]}
BATCH = {"level": "visible", "with": ["batch", "scatter", "step", "resetbatch", "freebatch"]}
batch = OneKind("easydel-batch", "store", Store, STORE, {"version": easydel.__version__}, {"batch": BATCH})
