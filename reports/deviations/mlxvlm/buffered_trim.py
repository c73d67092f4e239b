"""mlx-vlm: `BufferedRotatingKVCache` can be trimmed, it says, and loses rows that are needed. Wrong result.

RING-10, by window=3 and room for two rows: six rows, then a trim of two. Once rows were dropped there is no more
room for a trim than the newest update gave. `is_trimmable` is true all the same, and the window comes out short.
The reuse of prompts looks at `start_position` for this reason since pull request 1748; speculation trims no more
than its newest block. An update of no rows drops the room for that too: `trim` then trims fewer, and says so.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import BufferedRotatingKVCache

cache = BufferedRotatingKVCache(max_size=3, buffer_size=2)
for token in range(6):
    row = mx.full((1, 1, 1, 1), float(token))
    cache.update_and_fetch(row, row)
expected = "cannot be trimmed, or the query at 4 sees [2.0, 3.0, 9.0]"
seen = "cannot be trimmed"
if cache.is_trimmable() and cache.trim(2) == 2:
    row = mx.full((1, 1, 1, 1), 9.0)
    seen = f"the query at {cache.offset} sees {cache.update_and_fetch(row, row)[0].flatten().tolist()}"
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen in expected)
