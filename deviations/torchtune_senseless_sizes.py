"""torchtune 0.6.1: a cache of no rows is made without a word. Unchecked.

Shortest trace: bounded max_len=0: (BOUNDED-12). Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report
from torchtune.modules import KVCache

cache = KVCache(1, 0, 1, 8, torch.float32)
sys.exit(report(cache.k_cache.shape[2] == 0, f"a cache of {cache.k_cache.shape[2]} rows was made"))
