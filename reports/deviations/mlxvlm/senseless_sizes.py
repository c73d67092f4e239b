"""mlx-vlm: a window of 0, and more kept rows than a ring has, are taken. Unchecked.

CACHE-3, by ring: open B window=0; SINK-17, by sink window=2 sinks=1: open B sinks=4. A ring of no rows gives
back none of what it is given.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import RotatingKVCache

row = mx.ones((1, 1, 1, 8))
expected = "ValueError"
try:
    held = RotatingKVCache(max_size=0).update_and_fetch(row, row)[0].shape[2]
    kept = RotatingKVCache(max_size=2, keep=4)
    seen = f"a window of 0 gives {held} rows back; {kept.keep} rows of {kept.max_size} are to be kept"
except ValueError:
    seen = expected
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
