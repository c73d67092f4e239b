"""mlx-lm 0.32.2: after an append of no rows to a full ring, the next row raises.

RING-4, which the adapter does not claim, since nothing promises such an append; shown for schedulers that hand
in empty batches. `RotatingKVCache` takes zero rows for a chunk: it keeps the newest W - 1 rows, and the next
single row asks for storage of a negative size. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report
from mlx_lm.models.cache import RotatingKVCache

cache, one, none = RotatingKVCache(max_size=3), mx.ones((1, 1, 1, 2)), mx.zeros((1, 1, 0, 2))
for _ in range(5):
    cache.update_and_fetch(one, one)
cache.update_and_fetch(none, none)
try:
    cache.update_and_fetch(one, one)
except ValueError as e:
    sys.exit(report(cache.offset == 5, f"five rows, no rows, one row: ValueError: {e}"))
sys.exit(report(False, "five rows, no rows, one row are taken"))
