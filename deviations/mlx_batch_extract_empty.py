"""mlx-lm 0.32.2: a batch cache that holds nothing cannot extract a sequence.

Shortest trace: ragged batch=1 padding=left: open B kind=growing; extract 0 B (RAGGED-22; RAGGED-30 behind it).
`filter`, `extend` and `merge` of `BatchKVCache` provide for caches without rows; `extract` takes a part of `keys`,
which is None, and raises TypeError. Status 0 if it still reproduces.
"""

import sys

from float64 import report
from mlx_lm.models.cache import BatchKVCache, KVCache

merged = BatchKVCache.merge([KVCache(), KVCache()])
merged.filter([0])
try:
    merged.extract(0)
    answer = "answers"
except TypeError as e:
    answer = f"raises TypeError: {e}"
sys.exit(report(answer.startswith("raises"), f"extract(0) of a batch of empty caches {answer}"))
