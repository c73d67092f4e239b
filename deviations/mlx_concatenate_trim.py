"""mlx-lm 0.32.2: rows that `ConcatenateKVCache.trim` removed come back with the next update. A wrong result.

Shortest trace: growing kv_heads=1: append 1; rewind 0; append 1 (GROW-1, GROW-2, GROW-6).

`trim` lowers `offset` and leaves `keys` and `values` as they are; `update_and_fetch` joins the new rows to all
of them and sets `offset` to the whole length. A query then attends to rows that are no part of its text.
`is_trimmable` says that the cache can be trimmed. The last layers of afm7 use this class. Status 0 if it still
reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import attention, report, rows
from mlx_lm.models.base import scaled_dot_product_attention
from mlx_lm.models.cache import ConcatenateKVCache, trim_prompt_cache

keys, values, query = rows(4, seed=1), rows(4, seed=2), rows(1, seed=3)


def batched(array):
    """`[n, dim]` as mlx-lm's `[batch, heads, n, dim]`."""
    return mx.array(array)[None, None]


cache = ConcatenateKVCache()
cache.update_and_fetch(batched(keys[:3]), batched(values[:3]))
trimmed = trim_prompt_cache([cache], 2)  # rows 1 and 2 were rejected
length = cache.offset
mask = cache.make_mask(1, return_array=False, window_size=None)
k, v = cache.update_and_fetch(batched(keys[3:]), batched(values[3:]))
found = scaled_dot_product_attention(batched(query), k, v, cache, scale=keys.shape[1] ** -0.5, mask=mask)

alive = [0, 3]
expected = attention(query, keys[alive], values[alive])
off = float(np.abs(np.array(found)[0, 0] - expected).max())
seen = f"after one more row the query sees {k.shape[2]} rows, not 2; off by {off:.2f}"
message = f"trimmed {trimmed}, length {length}; {seen}"
sys.exit(report(trimmed == 2 and length == 1 and k.shape[2] == 4 and off > 1e-3, message))
