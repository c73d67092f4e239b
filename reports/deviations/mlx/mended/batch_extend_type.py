"""mlx-lm: a batch that takes in one that holds nothing turns its rows into float32. A wrong result.

`BatchKVCache.extend` makes rows for the empty one without a type, which is float32; joined to rows in float16 they
turn all of them.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache

row = mx.ones((1, 1, 1, 2), mx.float16)
batch, empty = BatchKVCache([0]), BatchKVCache([0])
batch.update_and_fetch(row, row)
batch.extend(empty)
expected, seen = "mlx.core.float16", str(batch.keys.dtype)
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}: the type of keys\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
