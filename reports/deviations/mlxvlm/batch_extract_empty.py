"""mlx-vlm: a batch cache that holds nothing cannot give a sequence out. A broken promise.

RAGGED-22, by ragged batch=1 padding=left: open B kind=growing; extract 0 B. `filter`, `extend`, `merge` and the
`extract` of a `KVCache` provide for a cache without rows; that of a batch takes a part of `keys`, which is None.
"""

import sys
from importlib.metadata import version

from mlx_vlm.models.cache import BatchKVCache, KVCache

batch = BatchKVCache.merge([KVCache(), KVCache()])
batch.filter([0])
expected = "a cache of 0 rows"
try:
    seen = f"a cache of {batch.extract(0).offset} rows"
except TypeError as e:
    seen = f"TypeError: {e}"
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
