"""torchtune 0.6.1: `KVCache` broadcasts rows of fewer heads, and of one sequence to all. Unchecked.

Shortest trace: bounded max_len=1: append 1 kv_heads=1 (BOUNDED-11). `update` assigns to slices of its buffers,
which broadcasts and casts; it checks that there are not more sequences than it has. Nobody promised a refusal.
Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report, rows
from torchtune.modules import KVCache

cache = KVCache(batch_size=2, max_seq_len=4, num_kv_heads=2, head_dim=8, dtype=torch.float32)
row = torch.from_numpy(rows(1))[None, None]
keys, _ = cache.update(row, row)
same = sum(bool(torch.equal(keys[b, h, 0], row[0, 0, 0])) for b in range(2) for h in range(2))
text = f"one row of one head lies in {same} places of 2 sequences and 2 heads"
sys.exit(report(same == 4 and cache.size == 1, text))
