"""llama-cpp-python 0.3.36: with a window of 1, a sequence whose cells were all used again loses its position, and
its next token gets position 0. Wrong result.

Shortest trace: ring batch=3 window=1: append 4 (RING-2), where evaluations have 8 rows. Here two sequences share
256 cells: four tokens of one, then 300 of the other. The layer without a window still has the four; the next token
is then at position 0 instead of 4, and sees one of them. Status 0 if it still reproduces.
"""

import sys

import llama_cpp as llama
import numpy as np
from float64 import report
from tinymodel import decode, load, logits, open_context

model = load(window=1)
shared, alone = open_context(model, whole=False, sequences=2), open_context(model, whole=True)
for context in (shared, alone):
    assert decode(context, [1, 2, 3, 4]) == 0
for _ in range(300):
    assert decode(shared, [], [5]) == 0
last = llama.llama_memory_seq_pos_max(llama.llama_get_memory(shared), 0)
assert decode(shared, [6]) == 0 and decode(alone, [6]) == 0
off = float(np.abs(logits(shared) - logits(alone)).max())
text = f"the last position after four tokens is {last}; the next token's logits are off by {off:.3g}"
sys.exit(report(last == -1 and off > 1e-1, text))
