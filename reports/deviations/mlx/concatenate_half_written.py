"""mlx-lm: `ConcatenateKVCache` keeps the keys of an update whose values raise. After an error.

CACHE-2, by growing: append 1; append 1 v_dim=3; append 1. The keys are joined before the values. Nothing
promises that a cache can be used after an exception; nothing says that it cannot.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import ConcatenateKVCache

cache, row, wide = ConcatenateKVCache(), mx.zeros((1, 1, 1, 4)), mx.zeros((1, 1, 1, 5))
cache.update_and_fetch(row, row)
with suppress(ValueError):
    cache.update_and_fetch(row, wide)
keys, values = cache.update_and_fetch(row, row)
expected, seen = "2 keys and 2 values", f"{keys.shape[2]} keys and {values.shape[2]} values"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
