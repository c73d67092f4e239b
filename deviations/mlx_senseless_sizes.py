"""mlx-lm 0.32.2: windows and steps of 0, and more kept rows than a ring has, are taken without a word. Unchecked.

Shortest traces: ring window=0: (RING-14), growing step=0: (GROW-11), sink window=2 sinks=4: (SINK-17). A ring of no
rows gives back none of what it is given; a step of 0 raises ZeroDivisionError at the first update. Status 0 if it
still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report, rows
from mlx_lm.models.cache import KVCache, RotatingKVCache

row = mx.array(rows(1)[None, None])
held = RotatingKVCache(max_size=0).update_and_fetch(row, row)[0].shape[2]
kept = RotatingKVCache(max_size=2, keep=4)
cache = KVCache()
cache.step = 0
try:
    cache.update_and_fetch(row, row)
    raised = "nothing"
except ZeroDivisionError as e:
    raised = type(e).__name__
text = f"a window of 0 holds {held} rows; {kept.keep} of {kept.max_size} are kept; a step of 0 raises {raised}"
sys.exit(report(held == 0 and kept.keep > kept.max_size and raised == "ZeroDivisionError", text))
