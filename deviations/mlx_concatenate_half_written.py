"""mlx-lm 0.32.2: `ConcatenateKVCache` keeps the keys of an update whose values raise. A wrong result, if the caller
goes on.

Shortest trace: growing: append 1; append 1 v_dim=3; append 1 (GROW-10, and GROW-1 and GROW-2 behind it). The keys
are joined before the values. After a ValueError for values of another width there is a key more, and one right row
later there are three keys and two values. Nothing promises that a cache can be used after an exception; nothing
says that it cannot. Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report
from mlx_lm.models.cache import ConcatenateKVCache


def row(number, dim=4):
    """A row of one number, `[1, 1, 1, dim]`."""
    return mx.full((1, 1, 1, dim), number)


cache, raised = ConcatenateKVCache(), False
cache.update_and_fetch(row(0.0), row(0.0))
try:
    cache.update_and_fetch(row(9.0), row(9.0, dim=5))
except ValueError:
    raised = True
keys, values = cache.update_and_fetch(row(1.0), row(1.0))
found = keys.shape[2], values.shape[2]
sys.exit(report(raised and found == (3, 2), f"{found[0]} keys and {found[1]} values after two rows"))
