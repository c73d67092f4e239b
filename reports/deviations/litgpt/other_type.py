"""litgpt: rows of another type turn the whole cache to that type. A choice.

CACHE-2, by bounded max_len=1: append 1 dtype=bf16; CACHE-2 on a sliding window. `KVCache` moves its
buffers to the type of the newest rows, and says so: for mixed precision. Old rows lose the digits that the
narrower type lacks.
"""

import sys
from importlib.metadata import version

import torch
from litgpt.model import KVCache

cache, row = KVCache((1, 1, 4, 8), (1, 1, 4, 8), dtype=torch.float32), torch.full((1, 1, 1, 8), 1.01)
cache(torch.tensor([0]), row, row)
keys, _ = cache(torch.tensor([1]), row.bfloat16(), row.bfloat16())
expected, seen = "torch.float32, row 0 is 1.0100", f"{keys.dtype}, row 0 is {float(keys[0, 0, 0, 0]):.4f}"
print(f"litgpt {version('litgpt')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
