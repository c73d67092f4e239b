"""mlx-lm 0.32.2: the mask of a ring with `keep` hides the kept rows from later queries of a chunk. A wrong result.

Shortest trace: sink window=2 sinks=1: append 3 (SINK-4, SINK-21). `make_mask` for several rows is that of a window
of `max_size` columns, and the kept rows are the first columns. One row at a time every query sees them, so the same
tokens give other outputs in chunks. `make_prompt_cache(model, max_kv_size)` makes such caches, with keep=4.
Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import attention, report, rows
from mlx_lm.models.cache import RotatingKVCache

KEEP, SIZE, COUNT, DIM = 4, 16, 24, 8
keys, values, queries = (rows(COUNT, seed=seed) for seed in (1, 2, 3))


def outputs(chunk):
    """Attend to all rows in chunks of this many, as mlx-lm's models do: the mask, the update, the attention."""
    cache, found = RotatingKVCache(max_size=SIZE, keep=KEEP), []
    for begin in range(0, COUNT, chunk):
        q, k, v = (mx.array(a[None, None, begin : begin + chunk]) for a in (queries, keys, values))
        mask = cache.make_mask(q.shape[2])
        all_keys, all_values = cache.update_and_fetch(k, v)
        out = mx.fast.scaled_dot_product_attention(q, all_keys, all_values, scale=DIM**-0.5, mask=mask)
        found.append(np.array(out)[0, 0])
    return np.concatenate(found)


wanted = attention(queries, keys, values, window=SIZE - KEEP, sinks=KEEP)
single, chunked, whole = (np.abs(outputs(chunk) - wanted).max(axis=1) for chunk in (1, 6, COUNT))
wrong = [int((error > 1e-4).sum()) for error in (single, chunked, whole)]
message = f"of {COUNT} queries wrong: {wrong[0]} row by row, {wrong[1]} in chunks of 6, {wrong[2]} at once"
sys.exit(report(wrong[0] == 0 and wrong[1] > 0 and wrong[2] > 0, message))
