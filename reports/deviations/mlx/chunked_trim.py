"""mlx-lm: `ChunkedKVCache.trim` goes no further back than its front; others of the list do. A wrong result.

LAYER-17, by layers of=full,chunk:2: append 3; append 2; append 1; rewind 2. llama4 cuts the front of its chunked
caches before each step, and makes masks and positions from these offsets.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import ChunkedKVCache, KVCache, can_trim_prompt_cache, trim_prompt_cache

caches = [KVCache(), ChunkedKVCache(2)]
for n in (3, 2, 1):
    caches[1].maybe_trim_front()
    for cache in caches:
        cache.update_and_fetch(mx.ones((1, 1, n, 4)), mx.ones((1, 1, n, 4)))
asked = can_trim_prompt_cache(caches)
expected = "can be trimmed True, 4 trimmed of 6; offsets [2, 2]"
trimmed = trim_prompt_cache(caches, 4)
seen = f"can be trimmed {asked}, {trimmed} trimmed of 6; offsets {[cache.offset for cache in caches]}"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
