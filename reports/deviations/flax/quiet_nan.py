"""flax: a signalling NaN in bfloat16 comes back from a decode cache as a quiet one, on a CPU. Unchecked.

CACHE-5. The projections are replaced, so that rows go in as they are.
"""

import sys

import flax
import jax.numpy as jnp
import numpy as np
from flax import nnx

handed = []
attend = lambda query, key, value, **others: handed.append(key) or query  # noqa: E731
bf16 = jnp.bfloat16
model = nnx.MultiHeadAttention(1, 8, 8, decode=True, dtype=bf16, attention_fn=attend, rngs=nnx.Rngs(0))
for projection in ("query", "key", "value", "out"):
    setattr(model, projection, nnx.data(lambda array, **others: array))
model.init_cache((1, 4, 8), bf16)
row = jnp.asarray(np.full((1, 1, 1, 8), 0x7F81, np.uint16).view(bf16))
model(row, row, row)
expected, seen = "0x7f81", f"{np.asarray(handed[-1]).view(np.uint16).flat[0]:#x}"
print(f"flax {flax.__version__}: the bits of a NaN\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
