"""transformers: an update that raises still counts, or keeps half of, its rows. After an error.

CACHE-2, by ring window=1: append 1; append 1 k_dim=7; CACHE-2, by growing: append 1; append 1 v_dim=8;
BOUNDED-2, by bounded max_len=1: append 2; STORE-8, by store layers=1 max_len=1: append 2. Sliding and static
layers add to their length first; a growing one joins its keys first.
"""

import sys
from contextlib import suppress

import torch
from transformers import DynamicCache, MistralConfig, StaticCache, __version__

row, wide, two = torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 3), torch.ones(1, 1, 2, 1)
sliding, whole = (MistralConfig(num_hidden_layers=1, sliding_window=window) for window in (4, None))
static = StaticCache(config=whole, max_cache_len=3)
seen = {}
for name, cache in {"sliding": DynamicCache(config=sliding), "growing": DynamicCache(), "static": static}.items():
    cache.update(two, two, 0)
    with suppress(RuntimeError, IndexError):
        cache.update(*{"sliding": (wide, wide), "growing": (row, wide), "static": (two, two)}[name], 0)
    keys, values = cache.layers[0].keys, cache.layers[0].values
    seen[name] = int(cache.get_seq_length()), int((keys != 0).sum()), int((values != 0).sum())
expected = dict.fromkeys(seen, (2, 2, 2))
print(f"transformers {__version__}: length, keys, values\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
