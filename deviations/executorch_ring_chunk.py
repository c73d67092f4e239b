"""executorch 1.5.1: a ring takes chunks that are too long for it; their first queries miss rows. A wrong result.

Shortest trace: ring window=2: append 1; append 4 (RING-1: the first query of the chunk does not see the row
before it). `RingKVCache` has 2 W slots, and `update` takes up to 2 W rows at once. The first query needs W - 1 rows
before the chunk, so that W + 1 rows are the most that fit; longer chunks write over rows that are still needed, and
the mask hides their slots. The first chunk is right, whatever its length. Status 0 if it still reproduces.
"""

import sys
import warnings

import numpy as np
import torch
from executorch.examples.models.llama.attention import RingKVCache
from float64 import attention, report, rows

WINDOW, ROWS = 4, 24


def off(chunk):
    """How far attention over the cache is off at the worst, fed in chunks."""
    queries, keys, values = (rows(ROWS, seed=s) for s in (1, 2, 3))
    q, k, v = (torch.from_numpy(a)[None, None] for a in (queries, keys, values))
    cache, worst = RingKVCache(1, WINDOW, 1, 8, True), 0.0
    for first in range(0, ROWS, chunk):
        stop = min(first + chunk, ROWS)
        found = cache.update(torch.arange(first, stop), k[:, :, first:stop], v[:, :, first:stop])
        mask = cache.create_causal_mask_for_ring_buffer(first, stop - first)
        output = torch.nn.functional.scaled_dot_product_attention(q[:, :, first:stop], *found, attn_mask=mask)
        expected = attention(queries[first:stop], keys[:stop], values[:stop], WINDOW)
        worst = max(worst, float(np.abs(output[0, 0].numpy() - expected).max()))
    return worst


warnings.simplefilter("ignore", FutureWarning)
worst = {chunk: off(chunk) for chunk in range(1, 2 * WINDOW + 1)}
right = max(worst[chunk] for chunk in range(1, WINDOW + 2))
wrong = min(worst[chunk] for chunk in range(WINDOW + 2, 2 * WINDOW + 1))
text = (
    f"window {WINDOW}: {WINDOW + 1} rows at once off by {right:.0e}, {WINDOW + 2} and more by {wrong:.2f} or more"
)
sys.exit(report(right < 1e-5 and wrong > 1e-3, text))
