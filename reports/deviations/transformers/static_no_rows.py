"""transformers: a full static layer with a window does not take an update of no rows. Unchecked.

CACHE-1, by ring window=3: append 3; append 0. It joins all its rows but the oldest to the new ones, and copies the
newest `sliding_window` of them into its buffer, of which there is one too few. In a buffer of two the one that is
left takes both places.
"""

import sys

import torch
from transformers import MistralConfig, StaticCache, __version__


def keys_after(window):
    cache = StaticCache(MistralConfig(num_hidden_layers=1, sliding_window=window), max_cache_len=8)
    rows = torch.arange(1.0, window + 1).reshape(1, 1, window, 1)
    cache.update(rows, rows, 0)
    try:
        cache.update(rows[:, :, :0], rows[:, :, :0], 0)
    except RuntimeError:
        return "RuntimeError"
    return cache.layers[0].keys.flatten().tolist()


expected, seen = {2: [1.0, 2.0], 3: [1.0, 2.0, 3.0]}, {window: keys_after(window) for window in (2, 3)}
print(f"transformers {__version__}: rows by window\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
