"""mlx-lm 0.32.2: `BatchKVCache` does not check numbers of sequences. Unchecked.

Shortest traces: those of RAGGED-19 (filtering by a sequence that does not exist reads out of bounds, and may end
the process) and RAGGED-10 (lengths of three sequences for a batch of two: the update raises after it has counted
the rows). Status 0 if it still reproduces.
"""

import sys

import mlx.core as mx
from float64 import report, rows
from mlx_lm.models.cache import BatchKVCache

block = mx.array(rows(4).reshape(2, 1, 2, 8))
batch = BatchKVCache([0, 0])
batch.update_and_fetch(block, block)
batch.filter([5])
sequences = batch.keys.shape[0]
other = BatchKVCache([0, 0])
other.prepare(lengths=[1, 1, 1], right_padding=[1, 1, 1])
try:
    other.update_and_fetch(block, block)
    other.finalize()
    raised = False
except ValueError:
    raised = True
offsets = other.offset.tolist()
text = f"sequence 5 of 2 was kept ({sequences} left); three lengths for two sequences: {raised}, offsets {offsets}"
sys.exit(report(sequences == 1 and raised and max(offsets) > 0, text))
