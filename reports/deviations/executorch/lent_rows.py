"""executorch: what a caller writes into the rows that a cache returned is in the cache. Alias.

CACHE-4, by max_len=2: append 1; scribble; append 1. The caches return their buffers: a kernel that works in place
changes the rows of all later tokens.
"""

import sys
from importlib.metadata import version

import torch
from executorch.examples.models.llama.attention import KVCache, RingKVCache

row = torch.ones(1, 1, 1, 1)
expected = {"KVCache": [1.0, 2.0], "RingKVCache": [1.0, 2.0]}
seen = {}
for made in (KVCache, RingKVCache):
    cache = made(1, 2, 1, 1, True, torch.float32)
    keys, _ = cache.update(torch.tensor([0]), row, row)
    keys.mul_(9)
    seen[made.__name__] = cache.update(torch.tensor([1]), 2 * row, row)[0].flatten().tolist()[:2]
print(f"executorch {version('executorch')}\nexpected: keys {expected}\nseen:     keys {seen}")
sys.exit(seen == expected)
