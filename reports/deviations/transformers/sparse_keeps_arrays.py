"""transformers: a layer of MiniMax-M3 keeps the first keys of its indexer as they are handed in. An alias.

CACHE-4, by growing: append 1; scribble; append 1. What the caller writes into them later is in the cache; a layer
copies its keys and values.
"""

import sys

import torch
from transformers import __version__
from transformers.models.minimax_m3_vl.modeling_minimax_m3_vl import MiniMaxM3VLSparseCacheLayer

layer, row, later = MiniMaxM3VLSparseCacheLayer(), torch.ones(1, 1, 1, 1), torch.full((1, 1, 1, 1), 2.0)
layer.update_index(row)
row.fill_(9.0)
expected, seen = [1.0, 2.0], layer.update_index(later).flatten().tolist()
print(f"transformers {__version__}: the keys of an indexer, the first of them overwritten by the caller")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
