"""transformers 5.23.0: assisted generation computes a whole prompt again behind the rows of its cache.

A wrong result. SERVE-2 (rows that are reused), with drafts: ask a 3; ask b a[:3] 1. Without drafts,
`generate` computes only what the cache does not have. Status 0 if it still reproduces.
"""

import sys

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, bos_token_id=None, eos_token_id=None, **sizes)).eval()


def asked(prompt: list[int], cache: DynamicCache, **more: int) -> torch.Tensor:
    """Give the logits behind a prompt."""
    how = {"max_new_tokens": 1, "do_sample": False, "return_dict_in_generate": True, "output_logits": True}
    return model.generate(torch.tensor([prompt]), past_key_values=cache, **how, **more).logits[0]


alone, off = asked([3, 5, 7, 9], DynamicCache()), []
for more in ({}, {"prompt_lookup_num_tokens": 3}):
    cache = DynamicCache()
    asked([3, 5, 7], cache, **more)
    off.append(float((asked([3, 5, 7, 9], cache, **more) - alone).abs().max()))
    print(f"{more}: {cache.get_seq_length()} rows for 4 tokens, logits off by {off[-1]:.1e}")
sys.exit(0 if off[0] < 1e-5 < 1e-3 < off[1] else 1)
