"""mlx-lm 0.32.2: rows of another batch, number of heads or dtype are broadcast or cast, and not refused.

Shortest trace: growing batch=2: append 1; append 1 batch=1 (GROW-10); the same on a ring for single rows
(RING-13). Rows are written by assignment to a slice, which broadcasts: one sequence's row becomes that of every
sequence. A float32 row in a float16 cache is cast, here to infinity. An unchecked argument: nothing promises a
refusal. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import report
from mlx_lm.models.cache import KVCache

cache = KVCache()
two = mx.array([1.0, 2.0]).reshape(2, 1, 1, 1)
cache.update_and_fetch(two.astype(mx.float16), two.astype(mx.float16))
cache.update_and_fetch(mx.full((1, 1, 1, 1), 5.0), mx.full((1, 1, 1, 1), 5.0))
keys, _ = cache.update_and_fetch(two * 100000, two)
found = np.array(keys).reshape(2, 3).tolist()
message = f"rows [1 | 2] of a batch of two, then [5] of a batch of one, then [1e5 | 2e5] in float32: {found}"
sys.exit(report(found == [[1.0, 5.0, float("inf")], [2.0, 5.0, float("inf")]], message))
