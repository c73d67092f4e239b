"""litgpt 0.5.13: a cache of no rows, and a window of 0, are made without a word. Unchecked.

Shortest traces: bounded max_len=0: (BOUNDED-12); ring window=0: (RING-14). Nothing can be attended to in either.
Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report
from litgpt.model import KVCache

none = KVCache((1, 1, 0, 8), (1, 1, 0, 8), dtype=torch.float32)
window = KVCache((1, 1, 4, 8), (1, 1, 4, 8), dtype=torch.float32, is_sliding_window=True, sliding_window_size=0)
sys.exit(report(none.k.shape[2] == 0, f"caches of {none.k.shape[2]} rows and of a window of 0 were made"))
