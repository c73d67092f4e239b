"""mlx-lm 0.32.2: a batch is trimmed by more rows than its shortest sequence has.

Shortest trace: ragged kv_heads=1 padding=left: trim 1 (RAGGED-15). `BatchKVCache.trim(n)` looks at the width of the
batch alone. A sequence with fewer than n rows gets a length below 0, and the query of its next row sees nothing:
`left_padding` still hides the column. An unchecked argument. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import report
from mlx_lm.models.cache import BatchKVCache

cache, rows = BatchKVCache([0, 2]), mx.ones((2, 1, 3, 2))
cache.update_and_fetch(rows, rows)
lengths = cache.offset.tolist()
answer = cache.trim(2)
after = cache.offset.tolist()
seen = np.array(cache.make_mask(1))[:, 0, 0].astype(int).tolist()
message = f"of lengths {lengths} trim(2) answers {answer} and leaves {after}; the next queries see columns {seen}"
sys.exit(report(after == [1, -1] and seen[1] == [0, 0], message))
