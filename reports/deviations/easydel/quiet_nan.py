"""EasyDeL: a signalling NaN in bfloat16 comes back as a quiet one, on a CPU. Unchecked.

CACHE-5, by store layers=1 max_len=1 dtype=bf16: append 1 fill=bits. XLA on a CPU writes rows of bfloat16 by way of
float32, which sets a bit of such a NaN.
"""

import sys

import easydel
import jax
import jax.numpy as jnp
import numpy as np
from easydel.caching.transformer import TransformerCache, TransformerCacheConfig
from easydel.layers.quantization._quants import EasyQuantizer
from eformer.common_types import MODE_PREFILL
from eformer.escale import PartitionAxis, PartitionManager
from ejkernel.types import MaskInfo

places, plain = PartitionManager(PartitionAxis()), EasyQuantizer(quantization_config=None)
rows = jnp.asarray(np.full((1, 1, 1, 8), 0x7F81, np.uint16).view(jnp.bfloat16))
auto = (jax.sharding.AxisType.Auto,) * 5
with jax.make_mesh((1,) * 5, ("dp", "fsdp", "ep", "tp", "sp"), axis_types=auto) as mesh:
    size = TransformerCacheConfig.create(1, 1, 1, num_heads=1, head_dim=8)
    view = TransformerCache.init_cache(mesh, size, places, dtype=jnp.bfloat16).views[0]
    mask = MaskInfo.from_segments(jnp.ones((1, 1), jnp.int32))
    view = view.concatenate_to_cache(rows, rows, rows, MODE_PREFILL, plain, None, mask, places)[3]
expected, seen = "0x7f81", f"{np.asarray(view.key).view(np.uint16).flat[0]:#x}"
print(f"EasyDeL {easydel.__version__}: the bits of a NaN\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
