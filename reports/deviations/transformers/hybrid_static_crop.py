"""transformers: of a static layer with rows and a convolution a crop cuts the convolution alone. A wrong result.

LAYER-17, by layers of=full,conv:4 layers=2: append 3; rewind 1; append 1. Static hybrid layers have no `crop` of
their own, as dynamic ones have, and inherit that of linear attention. `is_croppable` is true.
"""

import sys

import torch
from transformers import DynamicCache, MinistralConfig, StaticCache, __version__


def keys(kind, **size):
    cache = kind(config=MinistralConfig(num_hidden_layers=1, layer_types=["hybrid"]), **size)
    cache.activate_past_recording()
    rows, row = torch.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1), torch.full((1, 1, 1, 1), 9.0)
    cache.update(rows, rows, 0)
    cache.update_conv_state(rows[0].transpose(1, 2), 0, conv_kernel_size=4)
    cache.crop(-2)
    return cache.update(row, row, 0)[0].flatten().tolist()


expected, seen = keys(DynamicCache), keys(StaticCache, max_cache_len=4)
print(f"transformers {__version__}: three rows, two of them cropped, a row")
print(f"expected: {expected}, as of a dynamic cache\nseen:     {seen}")
sys.exit(seen[: len(expected)] == expected)
