"""mlx-lm: `BatchKVCache` does not check numbers of sequences. Unchecked.

RAGGED-19: filtering by a sequence that does not exist reads out of bounds, and may end the process.
CACHE-2: with lengths of three sequences for a batch of two the update raises after it has counted the rows.
"""

import sys
from contextlib import suppress
from importlib.metadata import version

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache

batch, other, rows = BatchKVCache([0, 0]), BatchKVCache([0, 0]), mx.ones((2, 1, 2, 8))
batch.update_and_fetch(rows, rows)
with suppress(ValueError, IndexError):
    batch.filter([5])
with suppress(ValueError):
    other.prepare(lengths=[1, 1, 1], right_padding=[1, 1, 1])
    other.update_and_fetch(rows, rows)
    other.finalize()
expected = "filter([5]) of 2 sequences leaves 2; after three lengths for two sequences, offsets [0, 0]"
seen = f"filter([5]) of 2 sequences leaves {batch.keys.shape[0]}; after three lengths for two sequences, offsets "
seen += str(other.offset.tolist())
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
