"""mlx-lm: after an append of no rows to a full ring, the next row raises. Not claimed.

CACHE-1, by hand: window=3: five rows, none, one. `RotatingKVCache` takes zero rows for a chunk: it keeps the
newest W - 1 rows, and the next single row asks for storage of a negative size. Schedulers that hand in empty
batches meet it.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import RotatingKVCache

cache, one, none = RotatingKVCache(max_size=3), mx.ones((1, 1, 1, 2)), mx.zeros((1, 1, 0, 2))
for _ in range(5):
    cache.update_and_fetch(one, one)
cache.update_and_fetch(none, none)
expected = "3 rows"
try:
    seen = f"{cache.update_and_fetch(one, one)[0].shape[2]} rows"
except ValueError as e:
    seen = f"ValueError: {e}"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
