"""transformers: choosing sequences leaves the states of a hybrid layer as they were. A wrong result.

RAGGED-16, by ragged batch=2: feed 1,1; filter 1; feed 1. `batch_select_indices` and `batch_repeat_interleave` are
those of rows alone; `reorder_cache` is of both.
"""

import sys

import torch
from transformers import DynamicCache, MinistralConfig, __version__

cache = DynamicCache(config=MinistralConfig(num_hidden_layers=1, layer_types=["hybrid"]))
rows = torch.tensor([1.0, 2.0]).reshape(2, 1, 1, 1)
cache.update(rows, rows, 0)
cache.update_conv_state(rows[:, 0], 0)
cache.update_recurrent_state(rows[:, 0], 0)
cache.batch_select_indices(torch.tensor([1]))
found = cache.layers[0].keys, cache.get_conv_state(0), cache.get_recurrent_state(0)
expected, seen = [[2.0]] * 3, [each.flatten().tolist() for each in found]
print(f"transformers {__version__}: keys, convolution and state of the second of two sequences")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
