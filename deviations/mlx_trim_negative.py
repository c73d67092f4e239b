"""mlx-lm 0.32.2: trimming a negative number of tokens lengthens a cache, over rows that nobody appended.

Shortest trace: growing kv_heads=1: rewind 1 (GROW-7), ring window=1: rewind 1 (RING-9). `trim(n)` takes the
smaller of `offset` and n, which for n below 0 is n. An unchecked argument: nothing says what a negative number
means. Trimming more than there is removes all there is and answers how many; that is documented by
`trim_prompt_cache`, and a choice. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import report
from mlx_lm.models.cache import KVCache, trim_prompt_cache

cache, one = KVCache(), mx.ones((1, 1, 1, 2))
cache.update_and_fetch(one, one)
answer = trim_prompt_cache([cache], -2)
keys, _ = cache.keys_and_values()
found = np.array(keys)[0, 0, :, 0].tolist()
message = (
    f"trim_prompt_cache([cache], -2) answers {answer}; offset {cache.offset}, keys {found}, after one row of 1"
)
sys.exit(report(cache.offset == 3 and found == [1.0, 0.0, 0.0], message))
