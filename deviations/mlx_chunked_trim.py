"""mlx-lm 0.32.2: `ChunkedKVCache.trim` goes no further back than its front; other caches of the list do.

A wrong result. LAYER-17 (the target of a rewind is then the offset of each layer), for the list of llama4, a
chunked cache beside one that grows: layers of=full,chunk:2: append 3; append 2; append 1; rewind 2; append 1. The
chunked cache has cut its front, and trims what is left: from then on it is one position further than the other.
`can_trim_prompt_cache` says that the list can be trimmed, and `trim_prompt_cache` gives the number of its first
cache alone. llama4 makes its mask and its positions from these offsets. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report
from mlx_lm.models.cache import ChunkedKVCache, KVCache, can_trim_prompt_cache, trim_prompt_cache

CHUNK, STEPS, TRIM = 2, (3, 2, 1), 4

caches = [KVCache(), ChunkedKVCache(CHUNK)]
for n in STEPS:
    caches[1].maybe_trim_front()  # as llama4 does before each step
    for cache in caches:
        cache.update_and_fetch(mx.ones((1, 1, n, 4)), mx.ones((1, 1, n, 4)))
asked = can_trim_prompt_cache(caches)
trimmed = trim_prompt_cache(caches, TRIM)
offsets = [cache.offset for cache in caches]
later = sum(STEPS) - TRIM
message = f"can be trimmed: {asked}; {trimmed} trimmed of {sum(STEPS)}; offsets {offsets}, not [{later}, {later}]"
sys.exit(report(asked and trimmed == TRIM and offsets[0] == later != offsets[1], message))
