"""transformers 5.23.0: a dynamic sliding layer with a window of one never drops a row. A wrong result.

Shortest traces: ring window=1: append 1; append 1 (RING-1: the query sees both rows), and append 1; append 2
(MASK-8: the mask has two columns, the layer returns three rows). `DynamicSlidingWindowLayer` keeps the rows
from `-sliding_window + 1` on; for 1 that is `-0`, which is all of them. `get_mask_sizes` promises one column,
which is broadcast over all. Windows of two and more are right. No released model is known to us with a window
of one. Status 0 if it still reproduces.
"""

import sys

import numpy as np
import torch
from float64 import attention, report, rows
from transformers import DynamicCache, MistralConfig
from transformers.masking_utils import create_sliding_window_causal_mask


def off(window):
    """How far attention of single rows is off at the worst, and how many rows the last query is given."""
    config = MistralConfig(num_hidden_layers=1, sliding_window=window, attn_implementation="sdpa")
    cache = DynamicCache(config=config)
    queries, keys, values = (rows(6, seed=s) for s in (1, 2, 3))
    worst, given = 0.0, 0
    for i in range(6):
        query, key, value = (torch.from_numpy(a[i : i + 1])[None, None] for a in (queries, keys, values))
        mask = create_sliding_window_causal_mask(
            config=config, inputs_embeds=torch.empty(1, 1, 1), attention_mask=None, past_key_values=cache
        )
        k, v = cache.update(key, value, 0)
        found = torch.nn.functional.scaled_dot_product_attention(query, k, v, attn_mask=mask)[0, 0].numpy()
        expected = attention(queries[i : i + 1], keys[: i + 1], values[: i + 1], window)
        worst, given = max(worst, float(np.abs(found - expected).max())), k.shape[2]
    return worst, given


one, two = off(1), off(2)
message = f"window 1: {one[1]} rows given, off by {one[0]:.2f}; window 2: {two[1]} rows given, off by {two[0]:.0e}"
sys.exit(report(one[1] == 6 and one[0] > 1e-3 and two[0] < 1e-5, message))
