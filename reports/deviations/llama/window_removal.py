"""llama.cpp: where cells of a window were used again, `llama_memory_seq_rm` answers true. A choice.

RING-10, by hand: ring window=4: append 600; rewind 346. The next token misses rows of its window.
`llama_memory_seq_pos_min` tells, and callers are to ask it. Give a gguf with a window of 4; `swa_full` is
off.
"""

import sys
from importlib.metadata import version

import llama_cpp as llama

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
params = llama.llama_context_default_params()
params.n_ctx, params.n_batch, params.n_ubatch, params.swa_full = 4096, 4096, 64, False
params.n_threads = params.n_threads_batch = 1
context = llama.llama_init_from_model(model, params)
memory = llama.llama_get_memory(context)
tokens = (llama.llama_token * 600)(*[5] * 600)
assert llama.llama_decode(context, llama.llama_batch_get_one(tokens, 600)) == 0
answer = llama.llama_memory_seq_rm(memory, 0, 346, -1)
needed, first = 346 - llama.llama_model_n_swa(model) + 1, llama.llama_memory_seq_pos_min(memory, 0)
expected = f"false, or rows from {needed} on"
seen = f"{str(answer).lower()}, and rows from {first} on"
print(f"llama-cpp-python {version('llama-cpp-python')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(not answer or first <= needed)
