"""transformers: static layers are cropped to any length, whatever they have lost. Unchecked.

RING-10, by ring window=3: append 3; append 1; rewind 3; append 1; CACHE-7, by bounded: rewind -1. `is_croppable`
says no to the first, but `crop` does not look at it. A dynamic layer raises there, or drops what there is.
"""

import sys

import torch
from transformers import MistralConfig, StaticCache, __version__

sliding, whole = (MistralConfig(num_hidden_layers=1, sliding_window=window) for window in (3, None))
cache, bounded = StaticCache(sliding, max_cache_len=8), StaticCache(whole, max_cache_len=8)
one, three = torch.full((1, 1, 1, 1), 4.0), torch.arange(1.0, 4).reshape(1, 1, 3, 1)
for rows in (three, one):
    cache.update(rows, rows, 0)
bounded.update(one, one, 0)
expected, seen = "RuntimeError, [2.0, 3.0, 9.0] or nothing lost; a length of 0 or more", "RuntimeError"
try:
    cache.crop(-1)
    seen = cache.update(torch.full((1, 1, 1, 1), 9.0), torch.full((1, 1, 1, 1), 9.0), 0)[0].flatten().tolist()
    bounded.crop(-3)
except (RuntimeError, ValueError):
    pass
print(f"transformers {__version__}: 1 2 3, 4, crop(-1), 9; one row, crop(-3)\nexpected: {expected}")
print(f"seen:     {seen}; a length of {int(bounded.get_seq_length())}")
sys.exit(seen in ("RuntimeError", [2.0, 3.0, 9.0]) and bounded.get_seq_length() >= 0)
