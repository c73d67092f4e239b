"""llama.cpp: in one buffer, a sequence is shifted, and so is a copy of it. An alias.

RAGGED-24. Give a gguf of any model that can be shifted.
"""

import sys
from importlib.metadata import version

import llama_cpp as llama

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
params = llama.llama_context_default_params()
params.n_ctx, params.n_seq_max, params.n_threads, params.n_threads_batch, params.kv_unified = 256, 2, 1, 1, True
context = llama.llama_init_from_model(model, params)
memory = llama.llama_get_memory(context)
tokens = (llama.llama_token * 6)(1, 2, 3, 4, 5, 6)
llama.llama_decode(context, llama.llama_batch_get_one(tokens, 6))
llama.llama_memory_seq_cp(memory, 0, 1, -1, -1)
llama.llama_memory_seq_rm(memory, 0, 0, 4)
llama.llama_memory_seq_add(memory, 0, 4, -1, -4)
last = llama.llama_memory_seq_pos_max(memory, 1)
print(f"llama-cpp-python {version('llama-cpp-python')}: the last position of a copy of six tokens")
print(f"expected: 5\nseen:     {last}")
sys.exit(last == 5)
