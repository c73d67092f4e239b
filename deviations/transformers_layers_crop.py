"""transformers 5.23.0: `Cache.crop` cuts its layers one by one, so that one which raises leaves two lengths.

After an error. LAYER-16 (a refused rewind leaves every layer as it was), for a full layer before a sliding one:
layers of=full,window:2: append 2; rewind 1. The sliding layer has reached its window and raises; the full layer has
lost a row by then. `is_croppable` says True. The length of the cache is that of its first layer: one less than the
sliding layer has. Where the sliding layer stands first nothing is changed. Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report
from transformers import DynamicCache, MinistralConfig

TYPES = ["full_attention", "sliding_attention"]


def lengths(types):
    """The lengths of both layers behind two rows and a crop of one, and whether it raised."""
    config = MinistralConfig(num_hidden_layers=2, layer_types=types, sliding_window=2)
    cache = DynamicCache(config=config)
    for layer in range(2):
        cache.update(torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), layer)
    assert cache.is_croppable
    try:
        cache.crop(-1)
    except RuntimeError:
        return [cache.get_seq_length(layer) for layer in range(2)]
    return []


first, second = lengths(TYPES), lengths(TYPES[::-1])
message = f"a crop that raises leaves lengths {first}; {second} with the sliding layer first"
sys.exit(report(first == [1, 2] and second == [2, 2], message))
