"""mlx-lm: caches that hold nothing cannot be merged into a batch. A broken promise.

`BatchKVCache.merge` looks for the heads and the width of rows in caches that have some, and raises where none has.
"""

import sys
from importlib.metadata import version

from mlx_lm.models.cache import BatchKVCache, KVCache

expected = "a batch of 0 rows"
try:
    seen = f"a batch of {BatchKVCache.merge([KVCache(), KVCache()])._idx} rows"
except ValueError as e:
    seen = f"ValueError: {e}"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
