"""mlx-vlm: an update that raises still counts its rows. After an error.

CACHE-2, by growing kv_heads=1: append 1 values=0. These classes add to `offset` before they write. The next
query then attends to a row of zeros that nobody appended. Nothing promises that a cache can be used after an
exception.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import BatchKVCache, ChunkedKVCache, KVCache

row, wide = mx.ones((1, 1, 1, 4)), mx.ones((1, 1, 1, 5))
expected, seen = {}, {}
for cache in (KVCache(), BatchKVCache([0]), ChunkedKVCache(64)):
    cache.update_and_fetch(row, row)
    with suppress(ValueError):
        cache.update_and_fetch(wide, wide)
    keys, _ = cache.update_and_fetch(row + 1, row + 1)
    expected[type(cache).__name__] = [1.0, 2.0]
    seen[type(cache).__name__] = keys[0, 0, :, 0].tolist()
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
