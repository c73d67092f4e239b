"""transformers: a cache takes an order of nothing, a repeat of 0, and without rows any order. Unchecked.

RAGGED-19, by ragged: filter; repeat 0. What is left has no sequences. More rows cropped than there are, which is
RAGGED-15, empty it; its adapter for one layer declares that.
"""

import sys

import torch
from transformers import DynamicCache, __version__

row, seen = torch.ones(2, 1, 1, 1), {}
calls = {
    "no sequence": lambda cache: cache.batch_select_indices(torch.tensor([], dtype=int)),
    "repeat 0": lambda cache: cache.batch_repeat_interleave(0),
    "crop 3 of 1": lambda cache: cache.crop(-3),
}
for name, call in calls.items():
    cache = DynamicCache()
    cache.update(row, row, 0)
    try:
        call(cache)
        seen[name] = tuple(cache.layers[0].keys.shape)
    except (IndexError, ValueError, RuntimeError) as e:
        seen[name] = type(e).__name__
expected = "an error for each"
print(f"transformers {__version__}: two sequences of a row\nexpected: {expected}\nseen:     {seen}")
sys.exit(all(isinstance(shape, str) for shape in seen.values()))
