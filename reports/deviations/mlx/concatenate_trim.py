"""mlx-lm: rows that `ConcatenateKVCache.trim` removed come back with the next update. A wrong result.

GROW-1, by growing kv_heads=1: append 1; rewind 0; append 1. `trim` lowers `offset` and leaves `keys` and
`values` as they are; `update_and_fetch` joins the new rows to all of them. `is_trimmable` says that the cache
can be trimmed.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import ConcatenateKVCache, trim_prompt_cache

cache = ConcatenateKVCache()
rows = mx.array([0.0, 1.0, 2.0]).reshape(1, 1, 3, 1)
cache.update_and_fetch(rows, rows)
trimmed = trim_prompt_cache([cache], 2)  # rows 1 and 2 were rejected
length = cache.offset
keys, _ = cache.update_and_fetch(rows[:, :, :1] + 9, rows[:, :, :1] + 9)
expected = "2 rows trimmed, length 1; then the keys are [0.0, 9.0]"
seen = f"{trimmed} rows trimmed, length {length}; then the keys are {keys.flatten().tolist()}"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
