"""mlx-lm: `ChunkedKVCache.maybe_trim_front` counts room that is not written yet. A wrong result.

A chunked cache grows by `step` rows. Once its buffer is as long as a chunk, it dropped as many rows as the buffer
is longer, however few rows are written. Here these are all three, and the next two raise.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import ChunkedKVCache

cache, rows = ChunkedKVCache(2), mx.arange(1.0, 6.0).reshape(1, 1, 5, 1)
cache.update_and_fetch(rows[..., :3, :], rows[..., :3, :])
cache.maybe_trim_front()
expected = [2.0, 3.0, 4.0, 5.0]
try:
    seen = cache.update_and_fetch(rows[..., 3:, :], rows[..., 3:, :])[0][0, 0, :, 0].tolist()
except ValueError as e:
    seen = f"ValueError: {e}"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}: keys\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
