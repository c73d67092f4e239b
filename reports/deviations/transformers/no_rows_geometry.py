"""transformers: an update of no rows fixes the geometry of those that come after it. Unchecked.

CACHE-1, by growing: append 0; append 0 k_dim=5. Nothing was stored, and a model whose first call has no tokens is
none. The cache takes any geometry at its first update, and keeps to that of an empty one.
"""

import sys

import torch
from transformers import DynamicCache, MistralConfig, StaticCache, __version__

static = StaticCache(config=MistralConfig(num_hidden_layers=1, sliding_window=None), max_cache_len=3)
none, row = torch.ones(2, 1, 0, 8), torch.ones(1, 1, 1, 5)
expected, seen = {}, {}
for name, cache in {"growing": DynamicCache(), "static": static}.items():
    cache.update(none, none, 0)
    expected[name] = "a row"
    try:
        cache.update(row, row, 0)
        seen[name] = "a row"
    except (RuntimeError, IndexError) as e:
        seen[name] = type(e).__name__
print(f"transformers {__version__}: none of a batch of 2, then one of one\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
