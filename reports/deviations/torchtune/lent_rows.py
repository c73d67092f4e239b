"""torchtune: what a caller writes into the rows that the cache returned is in the cache. Alias.

CACHE-4, by max_len=2: append 1; scribble; append 1. The cache returns its buffers: a kernel that works in place
changes the rows of all later tokens.
"""

import sys
from importlib.metadata import version

import torch
from torchtune.modules import KVCache

cache = KVCache(batch_size=1, max_seq_len=2, num_kv_heads=1, head_dim=1, dtype=torch.float32)
row = torch.ones(1, 1, 1, 1)
keys, _ = cache.update(row, row)
keys.mul_(9)
seen = cache.update(2 * row, row)[0].flatten().tolist()
expected = [1.0, 2.0]
print(f"torchtune {version('torchtune')}\nexpected: keys {expected}\nseen:     keys {seen}")
sys.exit(seen == expected)
