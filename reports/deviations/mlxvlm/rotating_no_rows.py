"""mlx-vlm: a full ring takes an update with no rows for a chunk, and loses a row for it. Wrong result.

RING-1, by window=3: three rows, none, one; RING-17 by four rows, none, one. `RotatingKVCache` keeps the newest
W - 1 rows, as for a chunk, and adds none. A ring that was just full then writes the next row over one that is
still seen; one that was full before asks for storage of a negative size. Schedulers that hand in empty batches
meet it.
"""

import sys
from importlib.metadata import version

import mlx.core as mx
from mlx_vlm.models.cache import RotatingKVCache

expected, seen = {}, {}
for n in (3, 4):
    cache = RotatingKVCache(max_size=3)
    for token in (*range(n), None, n):
        row = mx.full((1, 1, int(token is not None), 1), float(token or 0))
        try:
            held = sorted(cache.update_and_fetch(row, row)[0].flatten().tolist())
        except ValueError as e:
            held = f"ValueError: {e}"
    expected[n], seen[n] = [n - 2.0, n - 1.0, float(n)], held
print(f"mlx-vlm {version('mlx-vlm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
