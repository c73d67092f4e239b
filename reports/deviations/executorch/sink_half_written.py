"""executorch: an update that raises has written its keys, over rows that are still needed. After an error.

SINK-1, by sink window=2 sinks=2 beside=1: append 4; append 4 values=5; append 1. Keys and positions are written
before the values, of another width, raise.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import torch
from executorch.examples.models.llama.source_transformation.attention_sink import KVCacheWithAttentionSink

cache = KVCacheWithAttentionSink(1, 1, True, None, 2, 2)


def update(first, n, width=1):
    rows = torch.arange(first, first + n, dtype=torch.float32).reshape(1, 1, n, 1)
    return cache.update(torch.arange(first, first + n), rows, rows.expand(1, 1, n, width))[0].flatten()


update(0, 5)
with suppress(RuntimeError):
    update(5, 4, width=5)
keys = update(5, 1)
seen = sorted(keys[cache.create_causal_mask_for_ring_buffer(5, 1)[0] == 0].tolist())
print(f"executorch {version('executorch')}, two sinks, window 2\nexpected: [0.0, 1.0, 4.0, 5.0]\nseen:     {seen}")
sys.exit(seen == [0.0, 1.0, 4.0, 5.0])
