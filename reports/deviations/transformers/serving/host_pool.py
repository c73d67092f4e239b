"""transformers, continuous batching: requests that do not fit into the host's pool end all. A wrong result.

SERVE-18, by hand: twelve requests share 40 pages, and few pages of the host. Those that are preempted and do not
fit there are to be computed again. Memory that is pinned is for GPUs; here it is not.
"""

import re
import sys
from unittest.mock import patch

import torch
import transformers
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

tiny = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=8, vocab_size=60)
how = GenerationConfig(max_new_tokens=40, eos_token_id=-1, pad_token_id=0)
space = 8 * 4 * 2 * 8 * 4 / 2**30  # 8 pages of 4 rows: keys and values of 8 numbers each
batching = ContinuousBatchingConfig(page_size=4, num_blocks=40, max_batch_tokens=64, cpu_offload_space=space)
empty = torch.empty
with patch.object(torch, "empty", lambda *size, pin_memory=False, **more: empty(*size, **more)):
    prompts = [[n, n + 1, n + 2] for n in range(12)]
    answers = LlamaForCausalLM(tiny).eval().generate_batch(prompts, how, batching, progress_bar=False).values()
errors = {re.sub(r"\d+", "N", answer.error) for answer in answers if answer.error}
print(f"transformers {transformers.__version__}: 12 requests, 40 pages, room for 8 pages on the host")
print("expected: all have their 40 tokens")
print(f"seen:     {f'the manager ends, and requests with it: {errors}' if errors else 'they do'}")
sys.exit(not errors)
