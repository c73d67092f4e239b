"""flax: values narrower than a decode cache are written beside what was there. Unchecked.

CACHE-2, by bounded max_len=1: append 1 v_dim=3. The projections are replaced, so that rows go in as they
are.
"""

import sys

import flax
import jax.numpy as jnp
from flax import nnx

handed = []
attend = lambda query, key, value, **others: handed.append(value) or query  # noqa: E731
model = nnx.MultiHeadAttention(1, 8, 8, decode=True, attention_fn=attend, rngs=nnx.Rngs(0))
for projection in ("query", "key", "value", "out"):
    setattr(model, projection, nnx.data(lambda array, **others: array))
model.init_cache((1, 1, 8))
row = jnp.ones((1, 1, 1, 8))
expected = "an error"
try:
    model(row, row, row[..., :3])
    seen = f"three values became {handed[-1][0, 0, 0].tolist()}"
except (ValueError, TypeError):
    seen = expected
print(f"flax {flax.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
