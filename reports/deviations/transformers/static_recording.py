"""transformers: a static cache with layers that record their past makes no mask for one query. A wrong result.

LAYER-4, by layers of=full,state layers=2: append 1. A cache that records is not `is_compileable`, and only for one
that is a mask is made for a single query. The attention "sdpa" then takes in the empty slots of the buffer.
"""

import sys

import torch
from transformers import MinistralConfig, StaticCache, __version__
from transformers.masking_utils import create_causal_mask


def mask(record):
    config = MinistralConfig(num_hidden_layers=2, layer_types=["full_attention", "linear_attention"])
    config._attn_implementation = "sdpa"
    cache = StaticCache(config=config, max_cache_len=4)
    if record:
        cache.activate_past_recording()
    cache.update(torch.ones(1, 1, 2, 1), torch.ones(1, 1, 2, 1), 0)
    found = create_causal_mask(config=config, inputs_embeds=torch.ones(1, 1, 1), attention_mask=None, cache=cache)
    return None if found is None else found.flatten().tolist()


expected, seen = mask(False), mask(True)
print(f"transformers {__version__}: a mask for the third row, in four slots")
print(f"expected: {expected}, as where nothing is recorded\nseen:     {seen}")
sys.exit(seen == expected)
