"""executorch: a ring takes chunks that are too long for it; their first queries miss rows. A wrong result.

RING-1, by ring window=2: append 1; append 4. `RingKVCache` has 2 W slots, and `update` takes up to 2 W rows at
once. The first query needs W - 1 rows before the chunk, so that W + 1 rows are the most that fit. Longer chunks
write over rows that are still needed, and the mask hides their slots. The first chunk is right.
"""

import sys
from importlib.metadata import version

import torch
from executorch.examples.models.llama.attention import RingKVCache


def first_query_sees(chunk, window=4):
    cache, found = RingKVCache(1, window, 1, 1, True), {}
    for first in (0, chunk):
        rows = torch.arange(first, first + chunk, dtype=torch.float32).reshape(1, 1, chunk, 1)
        keys, _ = cache.update(torch.arange(first, first + chunk), rows, rows)
        mask = cache.create_causal_mask_for_ring_buffer(first, chunk)
        found[first] = sorted(keys.flatten()[mask[0] == 0 if mask.dtype != torch.bool else mask[0]].tolist())
    return found[chunk]


expected = {chunk: [float(chunk - 3 + i) for i in range(4)] for chunk in (5, 6, 8)}
seen = {chunk: first_query_sees(chunk) for chunk in expected}
print(f"executorch {version('executorch')}, window 4, rows by chunk\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
