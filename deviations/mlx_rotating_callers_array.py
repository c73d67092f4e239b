"""mlx-lm 0.32.2: `RotatingKVCache` writes into the array that its caller handed in, and into what it returned.

RING-16, which the adapter does not claim: found by reading, not by the suite. The first append of several rows
keeps the caller's own arrays; when it is just full, the next single row is assigned to slot 0 of them.
Elsewhere in mlx an array that one holds does not change. mlx-lm's models do not keep these arrays for longer
than a layer. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report
from mlx_lm.models.cache import RotatingKVCache

mine = mx.array([0.0, 1.0, 2.0]).reshape(1, 1, 3, 1)
cache = RotatingKVCache(max_size=3)
returned, _ = cache.update_and_fetch(mine, mx.array(mine))
cache.update_and_fetch(mx.full((1, 1, 1, 1), 9.0), mx.full((1, 1, 1, 1), 9.0))
message = (
    f"the caller's array was [0, 1, 2] and is {mine.flatten().tolist()}; returned: {returned.flatten().tolist()}"
)
sys.exit(report(mine.flatten().tolist() == [9.0, 1.0, 2.0] and returned.flatten().tolist()[0] == 9.0, message))
