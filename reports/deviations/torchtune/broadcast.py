"""torchtune: `KVCache` broadcasts rows of fewer heads, and of one sequence to all. Unchecked.

CACHE-2, by bounded max_len=1: append 1 kv_heads=1. `update` assigns to slices of its buffers, which
broadcasts and casts; it checks that there are not more sequences than it has.
"""

import sys
from importlib.metadata import version

import torch
from torchtune.modules import KVCache

cache = KVCache(batch_size=2, max_seq_len=4, num_kv_heads=2, head_dim=8, dtype=torch.float32)
row = torch.ones(1, 1, 1, 8)
expected = "ValueError"
try:
    keys, _ = cache.update(row, row)
    places = int(keys[:, :, 0].all(-1).sum())
    seen = f"one row of one head lies in {places} places of 2 sequences and 2 heads"
except (ValueError, RuntimeError):
    seen = expected
print(f"torchtune {version('torchtune')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
