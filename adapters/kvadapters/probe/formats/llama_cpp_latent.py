"""What llama.cpp calls the latent rows of DeepSeek-V3. Its cache has one row for all heads: the latent, and behind
it the key that RoPE turned. What makes keys and values of a latent stands in two tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from kvadapters.probe.architecture import Tensors
from kvadapters.probe.architectures.deepseek import NOPE
from kvadapters.probe.formats.gguf import Value
from kvadapters.probe.layout import HEAD_DIM, Layout

NAMES = (
    ("self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"),
    ("self_attn.kv_a_layernorm", "attn_kv_a_norm"),
    ("self_attn.k_b", "attn_k_b"),
    ("self_attn.v_b", "attn_v_b"),
)


def changed(layout: Layout, tensors: Tensors) -> Tensors:
    """Take the tensor behind the latent apart: for keys it is transposed, for values it is as it was."""
    found = {}
    for name, tensor in tensors.items():
        if not (layer := re.match(r"(.*self_attn\.)kv_b_proj\.weight", name)):
            found[name] = tensor
            continue
        parts = tensor.reshape(layout.heads, NOPE + HEAD_DIM, -1)
        found[f"{layer[1]}k_b.weight"] = np.ascontiguousarray(parts[:, :NOPE].transpose(0, 2, 1))
        found[f"{layer[1]}v_b.weight"] = np.ascontiguousarray(parts[:, NOPE:])
    return found


def values(layout: Layout, _: float) -> Mapping[str, Value]:
    """Say how wide rows are, in the cache and for each head, and that no layer has experts."""
    rank = layout.kv_heads * HEAD_DIM
    return {
        "attention.head_count_kv": 1,
        "attention.key_length": rank + HEAD_DIM,
        "attention.value_length": rank,
        "attention.key_length_mla": NOPE + HEAD_DIM,
        "attention.value_length_mla": HEAD_DIM,
        "attention.q_lora_rank": 0,
        "attention.kv_lora_rank": rank,
        "leading_dense_block_count": len(layout.layers),
        "expert_feed_forward_length": HEAD_DIM,
        "expert_shared_count": 1,
    }
