"""mlx-lm: the mask of a ring with `keep` hides the kept rows from later queries of a chunk. A wrong result.

SINK-4, by sink window=2 sinks=1: append 3. `make_mask` for several rows is that of a window of `max_size`
columns, and the kept rows are the first columns. `make_prompt_cache(model, max_kv_size)` makes such caches,
with keep=4.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import RotatingKVCache


def last_query_sees(chunk):
    cache = RotatingKVCache(max_size=16, keep=4)
    for first in range(0, 24, chunk):
        rows = mx.arange(first, first + chunk, dtype=mx.float32).reshape(1, 1, chunk, 1)
        mask = cache.make_mask(chunk)
        keys, _ = cache.update_and_fetch(rows, rows)
    seen = np.array(keys).ravel() if mask is None else np.array(keys).ravel()[np.array(mask)[-1]]
    return sorted(map(int, seen))


expected, seen = last_query_sees(1), last_query_sees(6)
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(expected[:4] == seen[:4])
