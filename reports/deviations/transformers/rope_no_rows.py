"""transformers: a rotary embedding of LongRoPE cannot be asked for no positions. A choice.

ROPE-10, by growing: rotate 0 0 scaling=longrope:2:4:1,1:2,2. It looks for the largest position, to choose a list.
"""

import sys

import torch
import transformers
from transformers.models.gpt_neox import GPTNeoXConfig
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding

lists = {"short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0]}
told = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "factor": 2.0,
    "original_max_position_embeddings": 4,
    **lists,
}
rotary = GPTNeoXRotaryEmbedding(GPTNeoXConfig(hidden_size=4, num_attention_heads=1, rope_parameters=told))
try:
    seen = list(rotary(torch.zeros(1), torch.zeros(1, 0, dtype=torch.long))[0].shape)
except RuntimeError as e:
    seen = f"RuntimeError: {str(e).split('.')[0]}"
print(f"transformers {transformers.__version__}\nexpected: cosines [1, 0, 4]\nseen:     {seen}")
sys.exit(seen == [1, 0, 4])
