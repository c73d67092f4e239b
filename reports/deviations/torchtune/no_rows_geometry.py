"""torchtune: an update of no rows whose width is another one raises. Unchecked.

CACHE-1, by max_len=1: append 0 k_dim=5. No rows change nothing, whatever their width; those of the cache's width
are taken.
"""

import sys
from importlib.metadata import version

import torch
from torchtune.modules import KVCache

cache = KVCache(batch_size=1, max_seq_len=1, num_kv_heads=1, head_dim=8, dtype=torch.float32)
seen = []
for width in (8, 5):
    none = torch.zeros(1, 1, 0, width)
    try:
        cache.update(none, none)
        seen.append("taken")
    except RuntimeError as e:
        seen.append(f"RuntimeError: {e}")
expected = ["taken", "taken"]
print(f"torchtune {version('torchtune')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
