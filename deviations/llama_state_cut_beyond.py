"""llama-cpp-python 0.3.36: a state that is put back is cut where it has no rows, and nothing says so. Choice.

Shortest trace: growing: append 1; snapshot s; restore s 2 (SNAP-8). The state of one token is put back, and the
positions from 2 on are removed: `llama_memory_seq_rm` answers true, and the sequence has one token. Status 0 if it
still reproduces.
"""

import ctypes
import sys

import llama_cpp as llama
from float64 import report
from tinymodel import decode, load, open_context

context = open_context(load(window=4), whole=True)
memory = llama.llama_get_memory(context)
assert decode(context, [1]) == 0
size = llama.llama_state_seq_get_size(context, 0)
saved = (ctypes.c_uint8 * size)()
assert llama.llama_state_seq_get_data(context, saved, size, 0) == size
assert decode(context, [2, 3]) == 0
assert llama.llama_state_seq_set_data(context, saved, size, 0) == size
removed = llama.llama_memory_seq_rm(memory, 0, 2, -1)
tokens = llama.llama_memory_seq_pos_max(memory, 0) + 1
text = f"removing from position 2 on is answered with {removed}, and the sequence has {tokens} token"
sys.exit(report(removed and tokens == 1, text))
