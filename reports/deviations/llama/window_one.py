"""llama.cpp: with a window of 1, a sequence whose cells were all used again has no position. A wrong result.

RING-2, by ring batch=3 window=1: append 4. Two sequences share 256 cells: four tokens of one, then 300 of the
other. The layers without a window still have the four; the next token is put at position 0. Give a gguf with
a window of 1.
"""

import sys
from importlib.metadata import version

import llama_cpp as llama

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
params = llama.llama_context_default_params()
params.n_ctx, params.n_ubatch, params.n_seq_max, params.kv_unified, params.swa_full = 4096, 64, 2, True, False
params.n_threads = params.n_threads_batch = 1
context = llama.llama_init_from_model(model, params)
memory = llama.llama_get_memory(context)
batch = llama.llama_batch_init(1, 0, 1)
batch.n_tokens, batch.n_seq_id[0] = 1, 1
for i in range(304):
    batch.seq_id[0][0], batch.pos[0], batch.token[0] = int(i >= 4), i if i < 4 else i - 4, 5
    assert llama.llama_decode(context, batch) == 0
expected, seen = 3, llama.llama_memory_seq_pos_max(memory, 0)
text = f"the last position of four tokens, window {llama.llama_model_n_swa(model)}"
print(f"llama-cpp-python {version('llama-cpp-python')}: {text}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
