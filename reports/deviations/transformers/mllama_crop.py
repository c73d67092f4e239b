"""transformers: a crop of Mllama's cache cuts rows of the image, as if they were tokens. A wrong result.

LAYER-42, by layers of=full,cross layers=1: encode 1; append 1; rewind 0; append 1. The rows of an image stand in a
layer of the same cache. `crop` takes as many from them as tokens are taken back, and the model answers otherwise.
"""

import sys

import torch
from transformers import DynamicCache, MllamaForCausalLM, MllamaTextConfig, __version__

torch.manual_seed(0)
sizes = {"vocab_size": 9, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "pad_token_id": 0}
ids = {"bos_token_id": 1, "eos_token_id": 2, "num_key_value_heads": 2, "num_hidden_layers": 2}
config = MllamaTextConfig(**sizes, **ids, cross_attention_layers=[1])
model, image, text = MllamaForCausalLM(config).eval(), torch.randn(1, 5, 16), torch.tensor([[3, 4, 5]])
model.model.layers[1].cross_attn_attn_gate.data.fill_(1.0)
cache, same = DynamicCache(config=config), DynamicCache(config=config)
for each in (cache, same):
    model(text, cross_attention_states=image, cache=each)
model(torch.tensor([[6]]), cache=cache)
cache.crop(-1)
right, seen = (model(torch.tensor([[7]]), cache=each).logits for each in (same, cache))
found = cache.layers[1].keys.shape[2], torch.allclose(right, seen, atol=1e-6)
print(f"transformers {__version__}: rows of the image after a crop, and whether the next token is as before")
print(f"expected: {(5, True)}\nseen:     {found}")
sys.exit(found == (5, True))
