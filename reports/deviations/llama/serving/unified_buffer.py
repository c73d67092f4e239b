"""llama.cpp: two sequences share a buffer, and a batch takes two evaluations: rows are dropped. A wrong result.

SERVE-12. To place the second evaluation, rows of the first sequence are dropped that its windows still show. Give a
gguf with a window of 8, as of: kvconform probe gemma3 --layers "window 8,full" --format gguf -o probe
"""

import sys
from importlib.metadata import version

import llama_cpp as llama
import numpy as np

model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
words, found = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model)), []
rows, params = llama.llama_batch_init(32, 0, 1), llama.llama_context_default_params()
params.n_ctx, params.n_ubatch, params.n_seq_max, params.n_threads, params.kv_unified = 256, 16, 4, 1, True
params.n_threads_batch, params.type_k, params.type_v, params.flash_attn_type = 1, 0, 0, 0
steps = [(2, 0, 20), (3, 0, 5), (0, 0, 4), (3, 0, 0), (0, 4, 5), (2, 0, 0)]  # sequence, position, tokens; 0 removes
for last in ([(0, 9, 16)], [(0, 9, 16), (1, 0, 6)]):
    context = llama.llama_init_from_model(model, params)
    for parts in [*([step] for step in steps), last]:
        tokens = [(sequence, first + i) for sequence, first, count in parts for i in range(count)]
        for at, (sequence, position) in enumerate(tokens):
            rows.token[at], rows.pos[at], rows.seq_id[at][0] = 50 * sequence + position, position, sequence
            rows.n_seq_id[at], rows.logits[at], rows.n_tokens = 1, True, len(tokens)
        if not tokens or llama.llama_decode(context, rows):
            llama.llama_memory_seq_rm(llama.llama_get_memory(context), parts[0][0], -1, -1)
    found.append(np.ctypeslib.as_array(llama.llama_get_logits_ith(context, 15), (words,)).copy())
off = float(np.abs(found[0] - found[1]).max())
print(f"llama-cpp-python {version('llama-cpp-python')}\nexpected: off by 0.00\nseen:     off by {off:.2f}")
sys.exit(off < 5e-3)
