"""transformers: a reset of a MiniMax cache leaves the states of linear attention as they were. A wrong result.

LAYER-37, by layers of=full,state layers=2: append 1; free. They stand in a list beside the layers, which `reset`
does not know; nor does `reorder_cache`.
"""

import sys

import torch
from transformers import __version__
from transformers.models.minimax.modeling_minimax import MiniMaxCache

cache, row = MiniMaxCache(), torch.ones(2, 1, 1, 1)
cache.update(row, row, 0)
cache.set_linear_cache(1, torch.tensor([1.0, 2.0]))
cache.reorder_cache(torch.tensor([1, 0]))
reordered = cache.get_linear_cache(1).tolist()
cache.reset()
expected, seen = ([2.0, 1.0], "nothing"), (reordered, cache.get_linear_cache(1))
print(f"transformers {__version__}: the states of two sequences put in the other order, and after a reset")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(cache.get_linear_cache(1) is None or not cache.get_linear_cache(1).any())
