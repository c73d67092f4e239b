"""EasyDeL: a cache that is inserted into a place beyond the last writes over the last sequence. Unchecked.

BATCH-9, by store max_len=2: append 1; batch 2; scatter 2 1. `dynamic_update_slice` moves a place that is out of
range to the last one. Nothing fails, and the sequence that was there is gone.
"""

import sys

import easydel
import jax
import jax.numpy as jnp
from easydel.caching.transformer import TransformerCache, TransformerCacheConfig
from easydel.layers.quantization._quants import EasyQuantizer
from eformer.escale import PartitionAxis, PartitionManager

places, plain = PartitionManager(PartitionAxis()), EasyQuantizer(quantization_config=None)
expected = "an error"
auto = (jax.sharding.AxisType.Auto,) * 5
with jax.make_mesh((1,) * 5, ("dp", "fsdp", "ep", "tp", "sp"), axis_types=auto) as mesh:
    sizes = [TransformerCacheConfig.create(n, 2, 1, num_heads=1, head_dim=8) for n in (2, 1)]
    batch, other = (TransformerCache.init_cache(mesh, size, places, dtype=jnp.float32) for size in sizes)
    other.views[0] = other.views[0].replace(key=jnp.full((1, 2, 1, 8), 5.0))
    try:
        batch.insert(other, 2, plain, places)
        seen = f"after an insertion of 5 into place 2 of 2 the keys are {batch.views[0].key[:, 0, 0, 0].tolist()}"
    except (ValueError, IndexError):
        seen = expected
print(f"EasyDeL {easydel.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
