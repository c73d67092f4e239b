"""flax: a decode cache of no rows is made. Unchecked.

CACHE-3, by bounded max_len=0.
"""

import sys

import flax
from flax import nnx

attention = nnx.MultiHeadAttention(1, 8, 8, decode=True, rngs=nnx.Rngs(0))
expected = "ValueError"
try:
    attention.init_cache((1, 0, 8))
    seen = f"a cache of {attention.cached_key.shape[1]} rows was made"
except ValueError:
    seen = expected
print(f"flax {flax.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
