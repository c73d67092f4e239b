"""mlx-lm 0.32.2: an update that raises where the buffers grow has lengthened one of them. A wrong result, if the
caller goes on.

Shortest trace: growing step=1: append 1; append 1 v_dim=3; append 1 (GROW-10, and GROW-2 behind it). `KVCache`,
`BatchKVCache` and `ChunkedKVCache` join new room to their keys before they join it to their values. Where values of
another width raise ValueError then, the offset is as before and the keys have room that the values have not. Here,
with the step of 256 that they are made with: 256 rows, one of a wrong width, one right row, whose value is lost
without a word. Nothing promises that a cache can be used after an exception; nothing says that it cannot. Status 0
if it still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report
from mlx_lm.models.cache import BatchKVCache, ChunkedKVCache, KVCache


def row(number, count=1, dim=4):
    """Rows of one number, `[1, 1, count, dim]`."""
    return mx.full((1, 1, count, dim), number)


def tried(cache):
    """How many keys and values there are after the right row, and whether the wrong one was counted."""
    cache.update_and_fetch(row(0.0, count=256), row(0.0, count=256))
    before = cache.size()
    try:
        cache.update_and_fetch(row(9.0), row(9.0, dim=5))
    except ValueError:
        counted = cache.size() != before
        keys, values = cache.update_and_fetch(row(1.0), row(1.0))
        return keys.shape[2], values.shape[2], counted
    return 0, 0, False


seen = {type(c).__name__: tried(c) for c in (KVCache(), BatchKVCache([0]), ChunkedKVCache(1024))}
message = "; ".join(f"{name} has {k} keys and {v} values after 257 rows" for name, (k, v, _) in seen.items())
sys.exit(report(all(found == (257, 256, False) for found in seen.values()), message))
