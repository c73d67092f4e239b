"""mlx-lm: an update that fills the buffer of a `KVCache` returns the buffer itself, and writes on it later. Alias.

CACHE-4, by growing step=4: append 4; scribble; append 1; and append 4; rewind 3; append 1; scribble. Where the
buffer has rows to spare, what is returned is an array of its own. At 256 rows, and at each multiple, it is not.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import KVCache

expected, seen = {}, {}
for n in (255, 256):
    rows, row = mx.arange(float(n)).reshape(1, 1, n, 1), mx.full((1, 1, 1, 1), -1.0)
    cache = KVCache()
    returned, _ = cache.update_and_fetch(rows, rows)
    cache.trim(1)
    cache.update_and_fetch(row, row)
    expected[n], seen[n] = float(n - 1), returned[0, 0, -1, 0].item()
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}: the last row that was returned, by the number of rows")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
