"""flax: past its length, the newest row takes the place of the last one in a decode cache. Unchecked.

BOUNDED-2, by bounded max_len=1: append 1; append 1. An index beyond the end is moved to the end, and no query
sees the row that was there. The projections are replaced, so that rows go in as they are.
"""

import sys

import flax
import jax.numpy as jnp
from flax import nnx

handed = []
attend = lambda query, key, value, **others: handed.append(key) or query  # noqa: E731
model = nnx.MultiHeadAttention(1, 8, 8, decode=True, attention_fn=attend, rngs=nnx.Rngs(0))
for projection in ("query", "key", "value", "out"):
    setattr(model, projection, nnx.data(lambda array, **others: array))
model.init_cache((1, 2, 8))
expected = "an error at the third row"
try:
    for number in (1.0, 2.0, 3.0):
        model(*[jnp.full((1, 1, 1, 8), number)] * 3)
    seen = f"after three rows in a cache of 2 the keys are {handed[-1][0, :, 0, 0].tolist()}"
except (ValueError, IndexError):
    seen = expected
print(f"flax {flax.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
