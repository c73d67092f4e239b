"""transformers 5.23.0: rows of another dtype, and values fewer or more than keys, are taken.

Shortest traces: growing: append 1 dtype=f32; append 1 (GROW-10), ring window=1: append 1 values=3 (RING-13).
`DynamicLayer` joins what it is given: one float32 row turns a whole float16 cache into float32, and three values
may stand behind one key. An unchecked argument: nothing promises a refusal. Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report
from transformers import DynamicCache

wide, half = torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2, dtype=torch.float16)
cache = DynamicCache()
cache.update(half, half, 0)
keys, _ = cache.update(wide, wide, 0)
_, values = cache.update(wide, torch.ones(1, 1, 3, 2), 0)
message = f"float16 rows became {keys.dtype}; then {cache.layers[0].keys.shape[2]} keys, {values.shape[2]} values"
sys.exit(
    report(keys.dtype == torch.float32 and values.shape[2] == 5 and cache.layers[0].keys.shape[2] == 3, message)
)
