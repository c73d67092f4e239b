"""transformers: a sliding cache made of what another iterates over counts the rows that were kept. A wrong result.

SNAP-12, by ring window=3: append 4; snapshot s; append 1; restore s 4. `DynamicCache(tuple(cache))` is how models
of several processes, and exported ones, hand caches on. Keys, values and the window are there, the length is not:
the next token gets the position of one that came before it.
"""

import sys

import torch
from transformers import DynamicCache, MistralConfig, __version__

cache = DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=3))
rows = torch.ones(1, 1, 10, 1)
cache.update(rows, rows, 0)
again = DynamicCache(tuple(cache))
expected, seen = cache.get_seq_length(), again.get_seq_length()
print(f"transformers {__version__}: ten rows\nexpected: length {expected}\nseen:     length {seen}")
sys.exit(seen == expected)
