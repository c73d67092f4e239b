"""litgpt 0.5.13: rows that are refused have overwritten keys that the next queries need. After an error.

Shortest trace: ring window=2: append 1; append 2 values=5; append 1 (RING-1, RING-3). `KVCache` writes keys, then
finds that the values have another width, and raises; in a sliding window the keys lie in slots of rows that are
still alive. Status 0 if it still reproduces.
"""

import sys

import torch
from float64 import report, rows
from litgpt.model import KVCache

shape = (1, 1, 2, 8)
cache = KVCache(shape, shape, dtype=torch.float32, is_sliding_window=True, sliding_window_size=2)
first, more, last = (torch.from_numpy(rows(n, seed=n))[None, None] for n in (1, 2, 3))
cache(torch.tensor([0]), first, first)
try:
    cache(torch.arange(1, 3), more, more[..., :5])
    raised = False
except RuntimeError:
    raised = True
keys, values = cache(torch.tensor([1]), last[:, :, :1], last[:, :, :1])
alike = torch.equal(keys, values), torch.equal(values[:, :, 0], first[:, :, 0])
text = (
    f"refused: {raised}; keys and values of the same rows alike: {alike[0]}; the first value as it was: {alike[1]}"
)
sys.exit(report(raised and alike == (False, True), text))
