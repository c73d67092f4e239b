"""DeepSeek-V3: latent rows. One latent and one rotated key serve all heads; dense feed-forward parts only."""

from __future__ import annotations

import numpy as np

from kvadapters.probe.architecture import Architecture, Config, Tensors
from kvadapters.probe.architectures import llama
from kvadapters.probe.arrays import Array
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.network import Layer, Network

NOPE = HEAD_DIM
"""Dimensions of a query without RoPE, all 0."""


def _config(layout: Layout) -> Config:
    return {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": llama.THETA,
        "rope_interleave": True,
        "attention_bias": False,
        "num_key_value_heads": layout.heads,
        "q_lora_rank": None,
        "kv_lora_rank": layout.kv_heads * HEAD_DIM,
        "qk_rope_head_dim": HEAD_DIM,
        "qk_nope_head_dim": NOPE,
        "v_head_dim": HEAD_DIM,
        "first_k_dense_replace": len(layout.layers),
        "moe_intermediate_size": HEAD_DIM,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "routed_scaling_factor": 1.0,
        "num_nextn_predict_layers": 0,
    }


def _tensors(network: Network) -> Tensors:
    found = llama.tensors(network)
    for number, layer in enumerate(network.attending):
        prefix = f"model.layers.{number}.self_attn"
        for name in ("k_proj", "v_proj"):
            del found[f"{prefix}.{name}.weight"]
        rank = len(layer.value)
        found[f"{prefix}.q_proj.weight"] = _behind_zeros(layer.query, network.heads)
        found[f"{prefix}.kv_a_proj_with_mqa.weight"] = np.concatenate([layer.value, layer.key])
        found[f"{prefix}.kv_a_layernorm.weight"] = np.ones(rank, np.float32)
        found[f"{prefix}.kv_b_proj.weight"] = _behind_zeros(_up(layer), network.heads)
    return found


def _up(layer: Layer) -> Array:
    assert layer.latent is not None
    return layer.latent.up


def _behind_zeros(rows: Array, heads: int) -> Array:
    """Put the part without RoPE, which is 0, before each head's rows: [heads * 128, n] from [heads * 64, n]."""
    parts = rows.reshape(heads, HEAD_DIM, -1)
    return np.concatenate([np.zeros_like(parts), parts], axis=1).reshape(2 * len(rows), -1)


DEEPSEEK = Architecture(
    "deepseek",
    {"full": llama.THETA},
    _config,
    _tensors,
    scale=(NOPE + HEAD_DIM) ** -0.5,
    neighbours=True,
    latent=True,
)
