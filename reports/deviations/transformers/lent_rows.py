"""transformers: what a caller writes into the tensors that an update returned is in the cache. Alias.

CACHE-4, by growing: append 1; scribble; append 1. A growing layer returns the tensors that it keeps, a static one
its buffers, a sliding one the rows that it keeps where the window is not passed. A kernel that works in place
changes the rows of all later tokens.
"""

import sys

import torch
from transformers import DynamicCache, MistralConfig, StaticCache, __version__

sliding, whole = (MistralConfig(num_hidden_layers=1, sliding_window=window) for window in (4, None))
static = StaticCache(config=whole, max_cache_len=2)
seen = {}
for name, cache in {"growing": DynamicCache(), "sliding": DynamicCache(config=sliding), "static": static}.items():
    row = torch.ones(1, 1, 1, 1)
    returned, _ = cache.update(row, row, 0)
    returned.mul_(9)
    seen[name] = cache.update(2 * torch.ones(1, 1, 1, 1), row, 0)[0].flatten().tolist()
expected = {name: [1.0, 2.0] for name in seen}
print(f"transformers {__version__}: keys\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
