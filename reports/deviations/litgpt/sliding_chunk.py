"""litgpt: with a sliding window, a chunk that comes after other rows is masked wrongly. A wrong result.

RING-1, by ring window=2: append 1; append 2. `KVCache` writes position p into slot p % W, also those of the
chunk, and `CausalSelfAttention` takes the first W columns of the triangle for these slots. The first chunk is
right, and so are single rows. For a prefill longer than W `KVCache` raises, since #2215, and advises chunks
of at most W rows.
"""

import sys
from importlib.metadata import version

import torch
from litgpt import GPT, Config

torch.manual_seed(0)
heads = {"n_layer": 1, "n_head": 2, "n_query_groups": 2, "n_embd": 16, "padded_vocab_size": 32, "block_size": 12}
model = GPT(Config(**heads, sliding_window_size=4, sliding_window_indices=[1])).eval()
tokens = torch.arange(12)[None]
with torch.inference_mode():
    expected, off = model(tokens), {}
    for chunk in (1, 3):
        model.set_kv_cache(1)
        found = [model(tokens[:, i : i + chunk], torch.arange(i, i + chunk)) for i in range(0, 12, chunk)]
        off[chunk] = round(float((torch.cat(found, 1) - expected).abs().max()), 2)
print(f"litgpt {version('litgpt')}: how far logits are off those without a cache, fed in chunks of 1 and of 3")
print(f"expected: {dict.fromkeys(off, 0.0)}\nseen:     {off}")
sys.exit(not any(off.values()))
