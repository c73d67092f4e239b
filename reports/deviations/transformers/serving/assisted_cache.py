"""transformers: assisted generation computes a whole prompt again behind the rows of its cache. A wrong result.

SERVE-2, with drafts: ask a 3; ask b a[:3] 1. Without drafts, `generate` computes only what the cache does not have.
"""

import sys

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, __version__

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, bos_token_id=None, eos_token_id=None, **sizes)).eval()
how = {"max_new_tokens": 1, "do_sample": False, "return_dict_in_generate": True, "output_logits": True}


def asked(*prompts, **more):
    cache = DynamicCache()
    for prompt in prompts:
        found = model.generate(torch.tensor([prompt]), past_key_values=cache, **how, **more).logits[0]
    return cache.get_seq_length(), found


_, alone = asked([3, 5, 7, 9])
rows, logits = asked([3, 5, 7], [3, 5, 7, 9], prompt_lookup_num_tokens=3)
expected, seen = "4 rows for 4 tokens, logits off by 0.000", f"{rows} rows for 4 tokens, logits off by "
seen += f"{float((logits - alone).abs().max()):.3f}"
print(f"transformers {__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
