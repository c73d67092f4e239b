"""llama-cpp-python 0.3.36: where the cells of a window are used again, `llama_memory_seq_rm` says that it removed
the newest tokens, and the next one then misses rows of its window. Choice: `llama_memory_seq_pos_min` would tell.

By hand: window=4, `swa_full` off: decode 600 tokens, remove those from position 346 on, decode one. Its logits are
not those of a context that only ever had 347 tokens; with `swa_full`, the default, they are. Status 0 if it still
reproduces.
"""

import sys

import llama_cpp as llama
import numpy as np
from float64 import report
from tinymodel import WORDS, decode, load, logits, open_context

WINDOW, ALL, LEFT = 4, 600, 346
TOKENS = [(7 * i + i * i) % WORDS for i in range(ALL)]
model = load(WINDOW)


def after_a_removal(whole: bool) -> tuple[bool, int, float]:
    """What the removal said, the first position left, and how far the next token's logits are off."""
    context, fresh = (open_context(model, whole) for _ in range(2))
    memory = llama.llama_get_memory(context)
    assert decode(context, TOKENS) == 0
    said = llama.llama_memory_seq_rm(memory, 0, LEFT, -1)
    first = llama.llama_memory_seq_pos_min(memory, 0)
    assert decode(context, [5]) == 0 and decode(fresh, [*TOKENS[:LEFT], 5]) == 0
    return said, first, float(np.abs(logits(context) - logits(fresh)).max())


whole, reused = after_a_removal(True), after_a_removal(False)
for name, (said, first, off) in (("swa_full", whole), ("not swa_full", reused)):
    print(f"{name}: removal {said}, first position {first}, logits off by {off:.3g}", file=sys.stderr)
needed = LEFT - WINDOW + 1
found = whole[2] < 1e-3 and reused[0] and reused[1] > needed and reused[2] > 1e-3
sys.exit(report(found, f"rows from position {needed} on are needed, and {reused[1]} is the first there is"))
