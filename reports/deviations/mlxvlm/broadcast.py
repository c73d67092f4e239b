"""mlx-vlm: rows of another batch, number of heads or dtype are broadcast or cast. Unchecked.

CACHE-2, by growing batch=2: append 1; append 1 batch=1; CACHE-2 on a ring. Rows are written by assignment to
a slice, which broadcasts: one sequence's row becomes that of each. Rows in float32 are cast to float16, here
to infinity.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import KVCache

cache, two = KVCache(), mx.array([1.0, 2.0]).reshape(2, 1, 1, 1)
one = mx.full((1, 1, 1, 1), 5.0)
cache.update_and_fetch(two.astype(mx.float16), two.astype(mx.float16))
expected = "ValueError"
try:
    cache.update_and_fetch(one, one)  # a row of a batch of one
    keys, _ = cache.update_and_fetch(two * 100000, two)  # rows in float32
    seen = f"the keys of the two sequences are {keys.reshape(2, 3).tolist()}"
except ValueError:
    seen = expected
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
