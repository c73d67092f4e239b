"""mlx-lm 0.32.2: an update that raises still counts its rows. A wrong result, if the caller goes on.

Shortest trace: growing kv_heads=1: append 1 values=0 (GROW-10: nothing is changed by what is refused). Here:
two rows; one row of a wrong width, which raises ValueError; one right row. `KVCache`, `BatchKVCache` and
`ChunkedKVCache` add to `offset` before they write. The next query then attends to a row of zeros that nobody
appended. Nothing promises that a cache can be used after an exception; nothing says that it cannot. Status 0 if
it still reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import attention, report, rows
from mlx_lm.models.base import scaled_dot_product_attention
from mlx_lm.models.cache import BatchKVCache, ChunkedKVCache, KVCache

keys, values, query = rows(3, seed=1), rows(3, seed=2), rows(1, seed=3)
wrong = mx.zeros((1, 1, 1, 5))


def batched(array):
    """`[n, dim]` as mlx-lm's `[batch, heads, n, dim]`."""
    return mx.array(array)[None, None]


def tried(cache):
    """How far the attention of one query is off, and how many rows the cache then counts."""
    cache.update_and_fetch(batched(keys[:2]), batched(values[:2]))
    try:
        cache.update_and_fetch(wrong, wrong)
    except ValueError:
        pass
    else:
        return 0.0, 0
    k, v = cache.update_and_fetch(batched(keys[2:]), batched(values[2:]))
    found = scaled_dot_product_attention(batched(query), k, v, cache, scale=keys.shape[1] ** -0.5, mask=None)
    return float(np.abs(np.array(found)[0, 0] - attention(query, keys, values)).max()), k.shape[2]


seen = {type(c).__name__: tried(c) for c in (KVCache(), BatchKVCache([0]), ChunkedKVCache(64))}
message = "; ".join(f"{name} has {n} rows, not 3, off by {off:.2f}" for name, (off, n) in seen.items())
sys.exit(report(all(n == 4 and off > 1e-3 for off, n in seen.values()), message))
