"""transformers 5.23.0: a second crop without an update between leaves a window short, without a word.

A wrong result. RING-10 (what cannot be brought back is refused), for a sliding layer that records its past:
window=4: append 8; rewind 7; rewind 6; append 1. The first crop cuts the rows to the W - 1 that the next query
needs; the second removes one of these, and the row before them is gone. Where the past is not recorded, the
same layer raises. The text says that an update waits for a crop; it does not say that one crop only may follow.
Found by reading: a rewind that is possible since the last append only is no claim that the suite knows, so that
no shipped adapter records. Status 0 if it still reproduces.
"""

import sys

import numpy as np
import torch
from float64 import attention, report, rows
from transformers import DynamicCache, MistralConfig

WINDOW = 4
keys, values, query = rows(9, seed=1), rows(9, seed=2), rows(1, seed=3)


def batched(array):
    """`[n, dim]` as transformers' `[batch, heads, n, dim]`."""
    return torch.from_numpy(np.ascontiguousarray(array))[None, None]


def off(*crops):
    """How far the query at position 6 is off, and how many rows it is given."""
    cache = DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=WINDOW))
    cache.activate_past_recording()
    cache.update(batched(keys[:8]), batched(values[:8]), 0)
    for crop in crops:
        cache.crop(crop)
    assert cache.get_seq_length() == 6
    k, v = cache.update(batched(keys[8:]), batched(values[8:]), 0)
    found = torch.nn.functional.scaled_dot_product_attention(batched(query), k, v)[0, 0].numpy()
    alive = [*range(6), 8]
    return float(np.abs(found - attention(query, keys[alive], values[alive], WINDOW)).max()), k.shape[2]


once, twice = off(-2), off(-1, -1)
message = f"crop(-2): {once[1]} rows, off by {once[0]:.0e}; crop(-1) twice: {twice[1]} rows, off by {twice[0]:.2f}"
sys.exit(report(once[1] == 4 and once[0] < 1e-5 and twice[1] == 3 and twice[0] > 1e-3, message))
