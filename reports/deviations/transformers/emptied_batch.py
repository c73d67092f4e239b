"""transformers: choosing sequences passes over a cache of which all rows were cropped. A broken promise.

RAGGED-16, by ragged batch=3: feed 2,2,2; trim 2,2,2; filter 0,2; feed 1,1. Its tensors have no rows, and still the
batch of before: `batch_select_indices` and `batch_repeat_interleave` do nothing where there are no rows.
"""

import sys

import torch
from transformers import DynamicCache, __version__


def fed(crop):
    cache, three, two = DynamicCache(), torch.ones(3, 1, 2, 1), torch.ones(2, 1, 1, 1)
    cache.update(three, three, 0)
    cache.crop(-crop)
    cache.batch_select_indices(torch.tensor([0, 2]))
    try:
        return tuple(cache.update(two, two, 0)[0].shape)
    except RuntimeError:
        return "RuntimeError"


expected, seen = {1: (2, 1, 2, 1), 2: (2, 1, 1, 1)}, {crop: fed(crop) for crop in (1, 2)}
print(f"transformers {__version__}: two rows of three, some cropped, two chosen, a row")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
