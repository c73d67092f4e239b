"""executorch: a cache of no rows, and a ring with a window of 0, are made. Unchecked.

CACHE-3, by bounded max_len=0; CACHE-3, by ring window=0. Nothing can be attended to in either.
"""

import sys
from importlib.metadata import version

import torch
from executorch.examples.models.llama.attention import KVCache, RingKVCache

expected = "ValueError"
try:
    sizes = [made(1, 0, 1, 8, True, torch.float32).k_cache.shape[2] for made in (KVCache, RingKVCache)]
    seen = f"a cache and a ring of {sizes} rows were made"
except ValueError:
    seen = expected
print(f"executorch {version('executorch')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
