"""mlx-vlm: trimming a negative number of tokens lengthens a cache. Unchecked.

CACHE-7, by growing kv_heads=1: rewind 1; CACHE-7 on a ring. `trim(n)` takes the smaller of `offset` and n,
which for n below 0 is n. The text does not say what a negative number means.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import KVCache

cache, row = KVCache(), mx.ones((1, 1, 1, 2))
cache.update_and_fetch(row, row)
with suppress(ValueError):
    cache.trim(-2)
expected, seen = [1.0], cache.keys[0, 0, : cache.offset, 0].tolist()
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}: keys\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
