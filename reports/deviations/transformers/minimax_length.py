"""transformers: the length of a MiniMax cache is 0 where the first layer is of linear attention. A wrong result.

LAYER-3, by layers of=state,full layers=2: append 2. The length is asked of the first layer, and a layer of linear
attention has none: positions start anew with each call, and the mask of a later chunk is as wide as the chunk.
"""

import sys

import torch
from transformers import __version__
from transformers.models.minimax import MiniMaxConfig, MiniMaxModel

torch.manual_seed(0)
sizes = {"hidden_size": 16, "head_dim": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 9}
types = ["linear_attention", "full_attention"]
model = MiniMaxModel(MiniMaxConfig(**sizes, intermediate_size=16, num_hidden_layers=2, layer_types=types)).eval()
tokens = torch.tensor([[1, 2, 3, 4]])
whole = model(tokens)[0]
first = model(tokens[:, :2], use_cache=True)
cache, length = first[1], first[1].get_seq_length()
second = model(tokens[:, 2:], cache=cache)[0]
expected, seen = (2, True), (length, torch.allclose(second, whole[:, 2:], atol=1e-4))
print(f"transformers {__version__}: the length after two tokens, and whether two more are answered as in one go")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
