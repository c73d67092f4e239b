"""mlx-vlm: a batch is trimmed by more rows than its shortest sequence has. Unchecked.

RAGGED-15, by ragged kv_heads=1 padding=left: trim 1. `BatchKVCache.trim(n)` looks at the width of the batch
alone. A sequence with fewer than n rows gets a length below 0, and the query of its next row sees no column,
not even its own.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import BatchKVCache

cache, rows = BatchKVCache([0, 2]), mx.ones((2, 1, 3, 2))
cache.update_and_fetch(rows, rows)  # sequences of 3 rows and 1 row
trimmed = cache.trim(2)
columns = cache.make_mask(1)[:, 0, 0].astype(mx.int32).sum(axis=-1).tolist()
expected = "no length below 0, and each next query sees a row at least"
seen = f"trim(2) of lengths [3, 1] leaves {cache.offset.tolist()}; the next queries see {columns} rows"
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(min(cache.offset.tolist()) >= 0 and min(columns) > 0)
