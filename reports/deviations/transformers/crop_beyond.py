"""transformers: cropping more rows than there are makes the length of a sliding layer less than zero. Unchecked.

CACHE-7, by hand: ring window=4: append 6; rewind -4. A growing layer is emptied, which its adapter declares. A
sliding layer that has reached its window and records its past is emptied too, and the next position is
negative.
"""

import sys
from contextlib import suppress

import torch
import transformers
from transformers import DynamicCache, MistralConfig

cache = DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=4))
cache.activate_past_recording()
cache.update(torch.ones(1, 1, 6, 1), torch.ones(1, 1, 6, 1), 0)
with suppress(ValueError):
    cache.crop(-10)
expected, length = "length 0, or 6 and a ValueError", cache.get_seq_length()
print(
    f"transformers {transformers.__version__}: six rows, crop(-10)\nexpected: {expected}\nseen:     length {length}"
)
sys.exit(length in (0, 6))
