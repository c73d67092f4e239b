"""torchtune: a layer that has no room raises, and the layers before it keep the rows of this step. After an error.

STORE-8, by store layers=2 max_len=2: append 1 layer=1; append 2. The caches are those that a model sets up, one a
layer, and a model updates them one by one.
"""

import sys
from importlib.metadata import version

import torch
from torchtune.modules import KVCache

row, two = torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 1)
caches = [KVCache(1, 2, 1, 1, torch.float32) for _ in range(2)]
caches[1].update(row, row)
try:
    for cache in caches:
        cache.update(two, two)
except AssertionError:
    pass
seen, expected = [cache.size for cache in caches], [0, 1]
print(f"torchtune {version('torchtune')}: lengths of two layers\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
