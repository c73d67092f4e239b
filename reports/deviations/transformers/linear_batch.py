"""transformers: choosing sequences raises at a layer of linear attention, which has no such call. A broken promise.

RAGGED-16, by ragged batch=2: filter 0. `Cache.batch_select_indices` and `batch_repeat_interleave` ask every layer;
those before it have been changed by then. `reorder_cache` goes through.
"""

import sys

import torch
from transformers import DynamicCache, MinistralConfig, __version__

config = MinistralConfig(num_hidden_layers=2, layer_types=["full_attention", "linear_attention"])
cache = DynamicCache(config=config)
rows = torch.ones(2, 1, 1, 1)
cache.update(rows, rows, 0)
cache.update_conv_state(rows[:, 0], 1)
try:
    cache.batch_select_indices(torch.tensor([1]))
    result = "ok"
except AttributeError:
    result = "AttributeError"
expected, seen = ("ok", 1, 1), (result, len(cache.layers[0].keys), len(cache.get_conv_state(1)))
print(f"transformers {__version__}: one of two sequences chosen; how many each layer has then")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
