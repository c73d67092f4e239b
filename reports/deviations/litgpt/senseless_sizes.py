"""litgpt: a cache of no rows, and a window of 0, are made. Unchecked.

CACHE-3, by bounded max_len=0; CACHE-3, by ring window=0. Nothing can be attended to in either.
"""

import sys
from importlib.metadata import version

import torch
from litgpt.model import KVCache

expected = "ValueError"
try:
    none = KVCache((1, 1, 0, 8), (1, 1, 0, 8), dtype=torch.float32)
    shape, window = (1, 1, 4, 8), {"is_sliding_window": True, "sliding_window_size": 0}
    KVCache(shape, shape, dtype=torch.float32, **window)
    seen = f"a cache of {none.k.shape[2]} rows and one with a window of 0 were made"
except ValueError:
    seen = expected
print(f"litgpt {version('litgpt')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
