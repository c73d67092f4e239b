"""llama-cpp-python 0.3.36: two sequences share a buffer, in one batch of two evaluations. To place the second one,
rows of the first are dropped that its windows still show. Wrong result. Status 0 if it still reproduces.

    kvconform probe gemma3 --layers "window 8,full" --format gguf -o probe
    python3 llama_unified_buffer.py probe/model.gguf
"""

import sys

import llama_cpp as llama
import numpy as np

silent = llama.llama_log_callback(lambda level, text, data: None)
llama.llama_log_set(silent, None)
model = llama.llama_model_load_from_file(sys.argv[1].encode(), llama.llama_model_default_params())
words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
params = llama.llama_context_default_params()
params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max, params.kv_unified = 256, 32, 16, 4, True
params.n_threads = params.n_threads_batch = 1
params.type_k = params.type_v = params.flash_attn_type = 0  # f32, no flash attention


def decode(context, *parts):
    """Decode (sequence, position, tokens) in one batch; give the logits of the last token of the first part."""
    batch, tokens = (
        llama.llama_batch_init(32, 0, 1),
        [(s, p + i, t) for s, p, ts in parts for i, t in enumerate(ts)],
    )
    batch.n_tokens = len(tokens)
    for at, (sequence, position, token) in enumerate(tokens):
        batch.token[at], batch.pos[at], batch.logits[at] = token, position, True
        batch.n_seq_id[at], batch.seq_id[at][0] = 1, sequence
    assert llama.llama_decode(context, batch) == 0
    return np.ctypeslib.as_array(llama.llama_get_logits_ith(context, len(parts[0][2]) - 1), (words,)).copy()


found = {}
for company in (False, True):
    context = llama.llama_init_from_model(model, params)
    memory = llama.llama_get_memory(context)
    decode(context, (2, 0, range(100, 120)))  # cells 0 to 19
    decode(context, (3, 0, range(120, 125)))  # cells 20 to 24
    decode(context, (0, 0, range(4)))  # cells behind them
    llama.llama_memory_seq_rm(memory, 3, -1, -1)
    decode(context, (0, 4, range(4, 9)))  # cells 20 to 24
    llama.llama_memory_seq_rm(memory, 2, -1, -1)
    beside = [(1, 0, range(50, 56))] if company else []  # cells 16 to 21, which hold tokens 4 and 5 of sequence 0
    found[company] = decode(context, (0, 9, range(9, 25)), *beside)
off = float(np.abs(found[True] - found[False]).max())
print(f"beside another sequence, logits are off by {off:.3g}")
sys.exit(0 if off > 1e-2 else 1)
