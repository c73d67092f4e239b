"""transformers: `Cache.crop` cuts its layers one by one, and one that raises leaves two lengths. After an error.

LAYER-16, by layers of=full,window:2: append 2; rewind 1. The sliding layer has reached its window and raises; the
full layer before it has lost a row by then.
"""

import sys
from contextlib import suppress

import torch
import transformers
from transformers import DynamicCache, MinistralConfig

types = ["full_attention", "sliding_attention"]
cache = DynamicCache(config=MinistralConfig(num_hidden_layers=2, layer_types=types, sliding_window=2))
for layer in range(2):
    cache.update(torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), layer)
croppable = cache.is_croppable
with suppress(RuntimeError):
    cache.crop(-1)
expected = "is_croppable True; after crop(-1) both lengths are the same"
lengths = [cache.get_seq_length(layer) for layer in range(2)]
seen = f"is_croppable {croppable}; after crop(-1) lengths are {lengths}"
print(f"transformers {transformers.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(lengths[0] == lengths[1])
