"""transformers: choosing and repeating sequences passes over rows that are quantised. A broken promise.

RAGGED-16 and RAGGED-18, by ragged batch=2 form=e4m3/t:1: feed 1,1; repeat 2. `batch_select_indices` raises, and
`batch_repeat_interleave` changes nothing, so that the next update raises.
"""

import sys

import torch
from transformers import MistralConfig, QuantizedCache, __version__


def rows(call, argument, wanted):
    cache = QuantizedCache("fp8", config=MistralConfig(num_hidden_layers=1, sliding_window=None))
    two, more = torch.ones(2, 1, 1, 1), torch.ones(wanted, 1, 1, 1)
    cache.update(two, two, 0)
    try:
        getattr(cache, call)(argument)
        return len(cache.update(more, more, 0)[0])
    except (IndexError, RuntimeError) as e:
        return type(e).__name__


expected = 1, 4
seen = rows("batch_select_indices", torch.tensor([1]), 1), rows("batch_repeat_interleave", 2, 4)
print(f"transformers {__version__}: sequences after one of two was chosen, and after each was repeated")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
