"""mlx-vlm: an update with no rows fixes heads, widths and dtype. Unchecked.

CACHE-1, by growing kv_heads=1: append 0; append 0 k_dim=5. The first update makes the buffers, also where it has
no rows. Rows of another width then raise. No text says what an update with no rows does.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import KVCache

cache = KVCache()
cache.update_and_fetch(mx.zeros((1, 1, 0, 8)), mx.zeros((1, 1, 0, 8)))
expected = "1 row of width 4"
try:
    keys, _ = cache.update_and_fetch(mx.ones((1, 1, 1, 4)), mx.ones((1, 1, 1, 4)))
    seen = f"{keys.shape[2]} row of width {keys.shape[3]}"
except ValueError as e:
    seen = f"ValueError: {e}"
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
