"""transformers: rows of another dtype, and values fewer or more than keys, are taken. Unchecked.

CACHE-2, by growing: append 1 dtype=f32; append 1, and CACHE-2, by ring window=1: append 1 values=3.
`DynamicLayer` joins what it is given: one row in float32 turns a whole cache in float16 into float32.
"""

import sys

import torch
import transformers
from transformers import DynamicCache

cache, wide = DynamicCache(), torch.ones(1, 1, 1, 2)
expected = "ValueError"
try:
    cache.update(wide.half(), wide.half(), 0)
    keys, _ = cache.update(wide, wide, 0)
    _, values = cache.update(wide, torch.ones(1, 1, 3, 2), 0)
    rows = cache.layers[0].keys.shape[2], values.shape[2]
    seen = f"rows in float16 became {keys.dtype}; then there were {rows[0]} keys and {rows[1]} values"
except ValueError:
    seen = expected
print(f"transformers {transformers.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
