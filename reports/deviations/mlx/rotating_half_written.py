"""mlx-lm: a ring whose update raises has written half of it. After an error.

CACHE-2, by ring window=1: append 1; append 2 v_dim=3; append 1. `RotatingKVCache` grows and writes its keys
before its values. In a ring with room the value of the next right row is lost; in a full ring a key is
overwritten, and its value is not.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import RotatingKVCache

row, wide = mx.ones((1, 1, 1, 4)), mx.ones((1, 1, 1, 5))
growing, full = RotatingKVCache(max_size=8), RotatingKVCache(max_size=2)
for cache in (growing, full):
    cache.update_and_fetch(mx.zeros((1, 1, 2, 4)), mx.zeros((1, 1, 2, 4)))
    with suppress(ValueError):
        cache.update_and_fetch(row * 9, wide)
arrays = {"with room": growing.update_and_fetch(row, row), "full": full.state[:2]}
expected = {"with room": [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], "full": [[0.0, 0.0], [0.0, 0.0]]}
seen = {name: [array[0, 0, :, 0].tolist() for array in both] for name, both in arrays.items()}
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}: keys, values\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
