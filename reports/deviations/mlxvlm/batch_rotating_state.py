"""mlx-vlm: a `BatchRotatingKVCache` made of its own state takes no rows, and has `rotated` true. Wrong result.

SNAP-3, by batch=2 window=3: append 1; snapshot s; restore s 1; append 1. `meta_state` writes `rotated` as text, and
reads it by `bool`, which is true of "False" too: mlx-lm had this, see its issue 1250. `from_state` leaves out
`_lengths`, which each update asks for.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import BatchRotatingKVCache

cache, row = BatchRotatingKVCache(3, [0, 0]), mx.ones((2, 1, 1, 4))
cache.update_and_fetch(row, row)
again = BatchRotatingKVCache.from_state(cache.state, cache.meta_state)
expected = "rotated False, 2 rows of each sequence"
try:
    rows = again.update_and_fetch(row, row)[0].shape[2]
    seen = f"rotated {again.rotated}, {rows} rows of each sequence"
except AttributeError as e:
    seen = f"rotated {again.rotated}, AttributeError: {e}"
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
