"""llama.cpp: a sequence whose positions were just moved is saved, and its keys are those of the old ones.

A wrong result. SNAP-1. Give a gguf as of: kvconform probe gemma3 --layers "window 4,full" --format gguf -o probe
"""

import sys
from importlib.metadata import version

import llama_cpp as llama
import numpy as np

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
params, found, tokens = llama.llama_context_default_params(), [], (llama.llama_token * 6)(1, 2, 3, 4, 5, 6)
words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
params.n_ctx, params.n_seq_max, params.n_threads, params.n_threads_batch = 512, 2, 1, 1
for loads in (False, True):  # the sequence goes on as it is, or as what is saved of it
    context = llama.llama_init_from_model(model, params)
    memory = llama.llama_get_memory(context)
    llama.llama_decode(context, llama.llama_batch_get_one(tokens, 6))
    llama.llama_memory_seq_rm(memory, 0, 0, 4)
    llama.llama_memory_seq_add(memory, 0, 4, -1, -4)
    if loads:
        data = (llama.ctypes.c_uint8 * llama.llama_state_seq_get_size(context, 0))()
        llama.llama_state_seq_get_data(context, data, len(data), 0)
        llama.llama_state_seq_set_data(context, data, len(data), 0)
    llama.llama_decode(context, llama.llama_batch_get_one(tokens, 1))
    found.append(np.ctypeslib.as_array(llama.llama_get_logits(context), (words,)).copy())
off = float(np.abs(found[0] - found[1]).max())
print(f"llama-cpp-python {version('llama-cpp-python')}\nexpected: off by 0.0\nseen:     off by {off:.1f}")
sys.exit(off < 0.1)
