"""flax 0.12.8, jax 0.10.2: three things that the decode cache of `nnx.MultiHeadAttention` takes. Unchecked.

BOUNDED-2, max_len=1: append 1; append 1. Past its length the newest row takes the place of the last one: an index
beyond the end is moved to the end, and no query sees the row that was there. BOUNDED-11, max_len=1: append 1
v_dim=3. Values narrower than the cache are written beside what was there. BOUNDED-13: a signalling NaN in bfloat16
comes back as a quiet one, on a CPU. The projections are replaced, so that rows go in as they are. Status 0 if all
reproduce.
"""

import sys

import jax.numpy as jnp
import numpy as np
from flax import nnx
from float64 import attention, report, rows


def made(length, dtype=jnp.float32):
    """An attention of one head with an empty cache, and what its attention function is handed."""
    handed = {}

    def attend(query, key, value, mask=None, **others):
        handed.update(keys=key, values=value)
        return nnx.dot_product_attention(query, key, value, mask=mask)

    model = nnx.MultiHeadAttention(1, 8, 8, decode=True, dtype=dtype, attention_fn=attend, rngs=nnx.Rngs(0))
    for projection in ("query", "key", "value", "out"):
        setattr(model, projection, nnx.data(lambda array, **others: array))
    model.init_cache((1, length, 8), dtype)
    return model, handed


def full(length, count=6):
    """How far the last query is off when there are more rows than the cache is long, or as many."""
    queries, keys, values = (rows(count, seed=s) for s in (1, 2, 3))
    model, _ = made(length)
    for q, k, v in zip(queries, keys, values, strict=True):
        found = model(*(jnp.asarray(a)[None, None, None] for a in (q, k, v)))
    return float(np.abs(np.asarray(found)[0, 0] - attention(queries[-1:], keys, values)).max())


def narrow():
    """The values of the cache after a row of three values."""
    model, handed = made(1)
    row = jnp.ones((1, 1, 1, 8))
    model(row, row, row[..., :3])
    return np.asarray(handed["values"])[0, 0, 0].tolist()


def quieted():
    """The bits of a signalling NaN, as they come back."""
    model, handed = made(4, jnp.bfloat16)
    row = jnp.asarray(np.full((1, 1, 1, 8), 0x7F81, np.uint16).view(jnp.bfloat16))
    model(row, row, row)
    return int(np.asarray(handed["keys"]).view(np.uint16).flat[0])


right, wrong, values, bits = full(6), full(5), narrow(), quieted()
text = (
    f"6 rows in a cache of 6: off by {right:.0e}, of 5: by {wrong:.2f}; values {values}; a NaN 0x7f81 is {bits:#x}"
)
sys.exit(report(right < 1e-5 and wrong > 1e-3 and values == [1.0] * 3 + [0.0] * 5 and bits != 0x7F81, text))
