"""llama.cpp: a state that is put back is cut where it has no rows, and the answer is true. A choice.

SNAP-8, by growing: append 1; snapshot s; restore s 2. The state of one token is put back, and the positions
from 2 on are removed: the sequence still has one token. Give a gguf of any model.
"""

import sys
from importlib.metadata import version

import llama_cpp as llama

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
params = llama.llama_context_default_params()
params.n_ctx, params.n_threads, params.n_threads_batch = 256, 1, 1
context = llama.llama_init_from_model(model, params)
memory = llama.llama_get_memory(context)
tokens = (llama.llama_token * 3)(1, 2, 3)
assert llama.llama_decode(context, llama.llama_batch_get_one(tokens, 1)) == 0
size = llama.llama_state_seq_get_size(context, 0)
saved = (llama.ctypes.c_uint8 * size)()
llama.llama_state_seq_get_data(context, saved, size, 0)
assert llama.llama_decode(context, llama.llama_batch_get_one(tokens, 2)) == 0
llama.llama_state_seq_set_data(context, saved, size, 0)
answer = llama.llama_memory_seq_rm(memory, 0, 2, -1)
tokens = llama.llama_memory_seq_pos_max(memory, 0) + 1
expected, seen = "false, or 2 tokens", f"{str(answer).lower()}, and {tokens} token"
print(f"llama-cpp-python {version('llama-cpp-python')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(not answer or tokens == 2)
