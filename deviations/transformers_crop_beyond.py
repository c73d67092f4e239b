"""transformers 5.23.0: cropping more rows than there are makes the length of a sliding layer less than zero.

Shortest trace: ring window=4: append 6; rewind -4 (RING-9), by hand. (1) A growing layer is emptied without a
word, which the adapter declares (`range: clamped at 0`). (2) A sliding layer that has reached its window and
records its past is emptied too, and says that its length is negative, so that the next position is. An unchecked
argument: nothing promises a refusal. (2) needs `activate_past_recording`, which the shipped adapter does not use.
Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report
from transformers import DynamicCache, MistralConfig


def cropped(window, count, remove):
    """The length after rows of ones and a crop."""
    cache = DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=window))
    cache.activate_past_recording()
    cache.update(torch.ones(1, 1, count, 1), torch.ones(1, 1, count, 1), 0)
    cache.crop(-remove)
    return cache.get_seq_length()


growing, sliding = cropped(None, 3, 5), cropped(4, 6, 10)
message = f"(1) three rows, crop(-5): length {growing}; (2) six rows, window 4, crop(-10): length {sliding}"
sys.exit(report((growing, sliding) == (0, -4), message))
