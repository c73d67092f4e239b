"""transformers: a dynamic sliding layer with a window of one never drops a row. A wrong result.

RING-1, by ring window=1: append 1; append 1; MASK-8, by append 1; append 2. `DynamicSlidingWindowLayer` keeps
the rows from `-sliding_window + 1` on; for 1 that is `-0`, which is all of them. `get_mask_sizes` promises
one column, which is broadcast over all. No released model is known to us with a window of one.
"""

import sys

import torch
import transformers
from transformers import DynamicCache, MistralConfig


def last_query_sees(window):
    cache = DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=window))
    for i in range(6):
        row = torch.full((1, 1, 1, 1), float(i))
        columns, _ = cache.get_mask_sizes(1, 0)
        keys, _ = cache.update(row, row, 0)
    return f"keys {keys.flatten().tolist()}, a mask of {columns} columns"


expected, seen = "keys [5.0], a mask of 1 columns", last_query_sees(1)
print(f"transformers {transformers.__version__}; a window of 2: {last_query_sees(2)}")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
