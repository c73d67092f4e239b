"""transformers: `crop` of a cache that records its past leaves the states of linear attention. A wrong result.

LAYER-15, by layers of=full,state: append 2; rewind 1. The rows of other layers, and of the convolution before the
state, are cut; what was folded of the token stays. Reported as #49036.
"""

import sys

import torch
from transformers import DynamicCache, MinistralConfig, __version__

types = ["full_attention", "linear_attention"]
cache = DynamicCache(config=MinistralConfig(num_hidden_layers=2, layer_types=types))
cache.activate_past_recording()
for token in (1.0, 2.0):
    row = torch.full((1, 1, 1, 1), token)
    cache.update(row, row, 0)
    cache.update_conv_state(row[0], 1, conv_kernel_size=4)
    cache.update_recurrent_state((cache.get_recurrent_state(1) if token > 1 else 0) + row, 1)
cache.crop(-1)
length, state = cache.get_seq_length(), cache.get_recurrent_state(1).item()
expected = "an error, or length 1 and the state of one token, 1.0"
print(f"transformers {__version__}\nexpected: {expected}\nseen:     length {length} and the state {state}")
sys.exit(length == 1 and state == 1.0)
