"""transformers: a second crop without an update between leaves a window short. A wrong result.

RING-10, by reading: ring window=4: append 8; rewind 7; rewind 6; append 1, where a sliding layer records its
past. The first crop cuts the rows to the W - 1 that the next query needs; the second removes one of these,
and the row before them is gone. Where the past is not recorded, the same layer raises.
"""

import sys

import torch
import transformers
from transformers import DynamicCache, MistralConfig


def keys_after(*crops):
    cache = DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=4))
    cache.activate_past_recording()
    rows = torch.arange(8.0).reshape(1, 1, 8, 1)
    cache.update(rows, rows, 0)
    for crop in crops:
        cache.crop(crop)
    return cache.update(torch.full((1, 1, 1, 1), 9.0), torch.full((1, 1, 1, 1), 9.0), 0)[0].flatten().tolist()


expected, seen = f"keys {keys_after(-2)}, as after crop(-2)", f"keys {keys_after(-1, -1)} after crop(-1) twice"
print(f"transformers {transformers.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(keys_after(-2) == keys_after(-1, -1))
