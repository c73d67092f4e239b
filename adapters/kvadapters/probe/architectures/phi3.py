"""Phi-3: one tensor for queries, keys and values. A head's width is the hidden size divided by the heads."""

from __future__ import annotations

import numpy as np

from kvadapters.probe.architecture import FEED_FORWARD, Architecture, Config, Tensors, size_of
from kvadapters.probe.architectures import llama
from kvadapters.probe.layout import Layout
from kvadapters.probe.network import Network


def _config(layout: Layout) -> Config:
    return {
        "architectures": ["Phi3ForCausalLM"],
        "model_type": "phi3",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": llama.THETA,
        "original_max_position_embeddings": 1 << 17,
        "sliding_window": size_of(layout, "window"),
    }


def _tensors(network: Network) -> Tensors:
    found, hidden = llama.tensors(network), network.embedding.shape[1]
    for number, layer in enumerate(network.attending):
        prefix = f"model.layers.{number}"
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"):
            del found[f"{prefix}.{name}.weight"]
        found[f"{prefix}.self_attn.qkv_proj.weight"] = np.concatenate([layer.query, layer.key, layer.value])
        found[f"{prefix}.mlp.gate_up_proj.weight"] = np.zeros((2 * FEED_FORWARD, hidden), np.float32)
    return found


PHI3 = Architecture(
    "phi3", {"full": llama.THETA, "window": llama.THETA}, _config, _tensors, alike=True, free_head_dim=False
)
