"""mlx-vlm: `RotatingKVCache` writes into the array that its caller handed in, and into what it returned. Alias.

CACHE-4, by window=3: append 3; append 1. The first append of several rows keeps the caller's own arrays, and so do
`ConcatenateKVCache`, `SimpleKVCache` and `BatchRotatingKVCache`. When it is just full, the next single row is
assigned to slot 0 of them. Elsewhere in mlx an array that one holds stays.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import RotatingKVCache

mine, row = mx.array([0.0, 1.0, 2.0]).reshape(1, 1, 3, 1), mx.full((1, 1, 1, 1), 9.0)
cache = RotatingKVCache(max_size=3)
returned, _ = cache.update_and_fetch(mine, mx.array(mine))
cache.update_and_fetch(row, row)
expected = "the caller's array [0.0, 1.0, 2.0], the returned one [0.0, 1.0, 2.0]"
seen = f"the caller's array {mine.flatten().tolist()}, the returned one {returned.flatten().tolist()}"
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
