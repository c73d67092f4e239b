"""litgpt 0.5.13: with a sliding window, a chunk that comes after other rows is masked wrongly. A wrong result.

Shortest trace: ring window=2: append 1; append 2 (RING-1: the first query of the chunk sees the row after it, and
misses the one before it). `KVCache` writes position p into slot p % W, also those of the chunk, and
`CausalSelfAttention` takes the first W columns of the triangle for these slots. The first chunk is right, and so
are single rows. For a prefill longer than W `KVCache` raises, since #2215, and advises chunks of at most W rows:
those are what goes wrong here. Status 0 if it still reproduces.
"""

import sys

import numpy as np
import torch
from float64 import attention, report, rows
from litgpt import GPT, Config
from litgpt.model import KVCache, build_mask_cache

WINDOW, ROWS = 4, 12
CONFIG = Config(
    n_layer=1,
    n_head=2,
    n_query_groups=2,
    n_embd=16,
    block_size=ROWS,
    padded_vocab_size=32,
    sliding_window_size=WINDOW,
    sliding_window_indices=[1],
)


def attended(chunk):
    """How far attention over the cache is off at the worst, fed in chunks."""
    queries, keys, values = (rows(ROWS, seed=s) for s in (1, 2, 3))
    q, k, v = (torch.from_numpy(a)[None, None] for a in (queries, keys, values))
    cache, worst = KVCache((1, 1, WINDOW, 8), (1, 1, WINDOW, 8), is_sliding_window=True), 0.0
    masks = build_mask_cache(ROWS)
    for first in range(0, ROWS, chunk):
        stop = first + chunk
        found = cache(torch.arange(first, stop), k[:, :, first:stop], v[:, :, first:stop])
        mask = masks[:, :, first:stop, : found[0].shape[2]]
        output = torch.nn.functional.scaled_dot_product_attention(q[:, :, first:stop], *found, attn_mask=mask)
        expected = attention(queries[first:stop], keys[:stop], values[:stop], WINDOW)
        worst = max(worst, float(np.abs(output[0, 0].numpy() - expected).max()))
    return worst


@torch.inference_mode()
def predicted(chunk):
    """How far a model's logits are off at the worst, fed in chunks, from those that it gives without a cache."""
    torch.manual_seed(0)
    model, tokens = GPT(CONFIG).eval(), torch.arange(ROWS)[None]
    expected = model(tokens)
    model.set_kv_cache(1)
    found = [model(tokens[:, i : i + chunk], torch.arange(i, i + chunk)) for i in range(0, ROWS, chunk)]
    return float((torch.cat(found, 1) - expected).abs().max())


one, three = (attended(1), predicted(1)), (attended(3), predicted(3))
text = f"attention and logits off by {max(one):.0e} row by row; by {three[0]:.2f} and {three[1]:.2f} in chunks of 3"
sys.exit(report(max(one) < 1e-5 and min(three) > 1e-3, text))
