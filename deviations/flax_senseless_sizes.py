"""flax 0.12: a decode cache of no rows is made without a word. Unchecked.

Shortest trace: bounded max_len=0: (BOUNDED-12). Status 0 if it still reproduces.
"""

import sys

from flax import nnx
from float64 import report

attention = nnx.MultiHeadAttention(1, 8, 8, decode=True, rngs=nnx.Rngs(0))
attention.init_cache((1, 0, 8))
rows = attention.cached_key.shape[1]
sys.exit(report(rows == 0, f"a cache of {rows} rows was made"))
