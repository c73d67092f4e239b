"""executorch 1.5.1: a cache of no rows, and a ring with a window of 0, are made without a word. Unchecked.

Shortest traces: bounded max_len=0: (BOUNDED-12); ring window=0: (RING-14). Nothing can be attended to in either.
Status 0 if it still reproduces.
"""

import sys

import torch
from executorch.examples.models.llama.attention import KVCache, RingKVCache
from float64 import report

none, ring = (made(1, 0, 1, 8, True, torch.float32) for made in (KVCache, RingKVCache))
sizes = [cache.k_cache.shape[2] for cache in (none, ring)]
sys.exit(report(sizes == [0, 0], f"a cache and a ring of {sizes} rows were made"))
