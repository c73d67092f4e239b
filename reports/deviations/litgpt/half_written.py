"""litgpt: rows that are refused have overwritten keys that the next queries need. After an error.

RING-1, by ring window=2: append 1; append 2 values=5; append 1. `KVCache` writes keys, then finds that the
values have another width, and raises; in a sliding window the keys lie in slots of rows that are still alive.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import torch
from litgpt.model import KVCache

shape, row = (1, 1, 2, 8), torch.ones(1, 1, 1, 8)
cache = KVCache(shape, shape, dtype=torch.float32, is_sliding_window=True, sliding_window_size=2)
cache(torch.tensor([0]), row, row)
with suppress(RuntimeError):
    more = torch.full((1, 1, 2, 8), 9.0)
    cache(torch.tensor([1, 2]), more, more[..., :5])
arrays = cache(torch.tensor([1]), row * 2, row * 2)
expected, seen = [[1.0, 2.0], [1.0, 2.0]], [array[0, 0, :, 0].tolist() for array in arrays]
print(f"litgpt {version('litgpt')}: keys, values\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
