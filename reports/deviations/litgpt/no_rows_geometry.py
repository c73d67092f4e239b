"""litgpt: an update of no rows whose width is another one raises. Unchecked.

CACHE-1, by max_len=1: append 0 k_dim=5. No rows change nothing, whatever their width; those of the cache's width
are taken.
"""

import sys
from importlib.metadata import version

import torch
from litgpt.model import KVCache

cache = KVCache((1, 1, 1, 8), (1, 1, 1, 8))
seen = []
for width in (8, 5):
    none = torch.zeros(1, 1, 0, width)
    try:
        cache(torch.arange(0), none, none)
        seen.append("taken")
    except RuntimeError as e:
        seen.append(f"RuntimeError: {e}")
expected = ["taken", "taken"]
print(f"litgpt {version('litgpt')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
