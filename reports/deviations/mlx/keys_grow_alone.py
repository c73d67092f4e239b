"""mlx-lm: an update that raises where the buffers grow has lengthened that of its keys alone. After an error.

CACHE-2, by growing step=1: append 1; append 1 v_dim=3; append 1. New room is joined to the keys before it is joined
to the values. Where values of another width raise between the two, the value of the next right row is lost.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache, ChunkedKVCache, KVCache

many, row, wide = mx.zeros((1, 1, 256, 4)), mx.zeros((1, 1, 1, 4)), mx.zeros((1, 1, 1, 5))
expected, seen = {}, {}
for cache in (KVCache(), BatchKVCache([0]), ChunkedKVCache(1024)):
    cache.update_and_fetch(many, many)
    with suppress(ValueError):
        cache.update_and_fetch(row, wide)
    keys, values = cache.update_and_fetch(row, row)
    expected[type(cache).__name__] = "257 keys and 257 values"
    seen[type(cache).__name__] = f"{keys.shape[2]} keys and {values.shape[2]} values"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
