"""executorch: beside sinks, too, a ring takes chunks that are too long; first queries miss rows. A wrong result.

SINK-4, by sink window=2 sinks=1 beside=1: append 2; append 4. `KVCacheWithAttentionSink` has 2 W slots behind the
sinks, and `update` refuses more than 2 W rows at once. The first query needs W - 1 rows before the chunk, so that
W + 1 rows are the most that fit. The same of rings without sinks is `executorch/ring_chunk`.
"""

import sys
from importlib.metadata import version

import torch
from executorch.examples.models.llama.source_transformation.attention_sink import KVCacheWithAttentionSink


def first_query_sees(chunk, window=4):
    cache = KVCacheWithAttentionSink(1, 1, True, None, window, 1)
    for first, n in ((0, 9), (9, chunk)):
        rows = torch.arange(first, first + n, dtype=torch.float32).reshape(1, 1, n, 1)
        keys, _ = cache.update(torch.arange(first, first + n), rows, rows)
    return sorted(keys.flatten()[cache.create_causal_mask_for_ring_buffer(9, chunk)[0] == 0].tolist())


expected = {chunk: [0.0, 6.0, 7.0, 8.0, 9.0] for chunk in (5, 6, 8)}
seen = {chunk: first_query_sees(chunk) for chunk in expected}
print(
    f"executorch {version('executorch')}, a sink, window 4, rows by chunk\nexpected: {expected}\nseen:     {seen}"
)
sys.exit(seen == expected)
