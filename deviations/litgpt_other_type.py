"""litgpt 0.5.13: rows of another type turn the whole cache to that type. A choice.

Shortest trace: bounded max_len=1: append 1 dtype=bf16 (BOUNDED-11), and on a sliding window (RING-13). `KVCache`
moves its buffers to the type of the newest rows, and says so: for mixed precision. Old rows lose the digits that
the narrower type lacks. Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report, rows
from litgpt.model import KVCache

cache = KVCache((1, 1, 4, 8), (1, 1, 4, 8), dtype=torch.float32)
row = torch.from_numpy(rows(1))[None, None]
cache(torch.tensor([0]), row, row)
keys, _ = cache(torch.tensor([1]), row.bfloat16(), row.bfloat16())
off = float((keys[0, 0, 0].float() - row[0, 0, 0]).abs().max())
sys.exit(
    report(keys.dtype == torch.bfloat16 and off > 0, f"the buffers are {keys.dtype}; row 0 is off by {off:.0e}")
)
