"""mlx-vlm: behind rows that were written round, the mask of a batch hides a live row from a chunk. A wrong result.

RAGGED-31, by ragged batch=2 window=3 padding=left: feed 4,1; feed 1,1; feed 2,3. As in mlx-lm: `make_mask` counts
by `_idx` how many columns will be cut off in front. Once the cache has turned this is the place of the next row,
and none are counted. The padding of a sequence shorter than the window is taken for one column more, a live row.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
import numpy as np
from mlx_vlm.models.cache import BatchRotatingKVCache, RotatingKVCache


def first_query_sees(cache, *columns):
    rows = mx.array(columns, dtype=mx.float32)[:, None, :, None]
    mask = cache.make_mask(rows.shape[2])
    keys, _ = cache.update_and_fetch(rows, rows)
    return np.array(keys)[0].ravel()[np.array(mask)[0, 0, 0]].tolist()


prompts = [RotatingKVCache(max_size=4), RotatingKVCache(max_size=4)]
for i, rows in enumerate(([1.0], [11.0, 12.0, 13.0, 14.0])):
    prompts[i].update_and_fetch(*[mx.array(rows)[None, None, :, None]] * 2)
batch = BatchRotatingKVCache.merge(prompts)
first_query_sees(batch, [2.0], [15.0])
expected, seen = [1.0, 2.0, 3.0], first_query_sees(batch, [3.0, 4.0], [16.0, 17.0])
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(expected == seen)
