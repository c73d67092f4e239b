"""llama.cpp: a batch of several sequences that share the cells of a window loses rows. A wrong result.

RING-1, by ring batch=3 window=3: append 3; append 4. Before it evaluates, `prepare` places one evaluation
after the other; to place a later one it drops rows that an earlier one still needs. Give a gguf with a window
of 72.
"""

import sys
from importlib.metadata import version

import llama_cpp as llama
import numpy as np

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
params, found, rows = llama.llama_context_default_params(), [], llama.llama_batch_init(90, 0, 1)
params.n_ctx, params.n_ubatch, params.n_seq_max, params.n_threads, params.n_threads_batch = 4096, 40, 3, 1, 1
for params.swa_full in (True, False):
    params.kv_unified = True
    context = llama.llama_init_from_model(model, params)
    for first in range(0, 420, 30):
        for at in range(90):  # 30 tokens of each of 3 sequences
            rows.pos[at], rows.seq_id[at][0] = first + at % 30, at // 30
            rows.n_tokens, rows.n_seq_id[at], rows.logits[at] = 90, 1, True
            rows.token[at] = (7 * first + 11 * at) % 200
        assert llama.llama_decode(context, rows) == 0
        found.append(np.ctypeslib.as_array(llama.llama_get_logits(context), (90, words)).copy())
off = float(np.abs(np.array(found[:14]) - np.array(found[14:])).max())
print(f"llama-cpp-python {version('llama-cpp-python')}, logits without swa_full against those with it:")
print(f"expected: off by 0.00\nseen:     off by {off:.2f}")
sys.exit(off < 1e-2)
