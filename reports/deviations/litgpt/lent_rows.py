"""litgpt: what a caller writes into the rows that the cache returned is in the cache. Alias.

CACHE-4, by max_len=2: append 1; scribble; append 1. The cache returns its buffers: a kernel that works in place
changes the rows of all later tokens.
"""

import sys
from importlib.metadata import version

import torch
from litgpt.model import KVCache

cache = KVCache((1, 1, 2, 1), (1, 1, 2, 1))
row = torch.ones(1, 1, 1, 1)
keys, _ = cache(torch.tensor([0]), row, row)
keys.mul_(9)
seen = cache(torch.tensor([1]), 2 * row, row)[0].flatten().tolist()
expected = [1.0, 2.0]
print(f"litgpt {version('litgpt')}\nexpected: keys {expected}\nseen:     keys {seen}")
sys.exit(seen == expected)
