"""Gemma 3. Full and window layers have bases of their own, embeddings are scaled, and norms multiply by 1 + w.
There is also a norm behind attention, which the ballast keeps almost constant."""

from __future__ import annotations

import numpy as np

from kvadapters.probe.architecture import Architecture, Config, Tensors, period, size_of, types
from kvadapters.probe.architectures import llama
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.network import Network

GLOBAL, LOCAL = 1_000_000.0, 10_000.0


def _config(layout: Layout) -> Config:
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": 1e-6,
        "rope_theta": GLOBAL,
        "rope_local_base_freq": LOCAL,
        "query_pre_attn_scalar": HEAD_DIM,
        "attention_bias": False,
        "sliding_window": size_of(layout, "window") or 4096,
        "layer_types": types(layout),
        **({"sliding_window_pattern": period(layout)} if period(layout) else {}),
    }


def _tensors(network: Network) -> Tensors:
    found, hidden = llama.tensors(network), network.embedding.shape[1]
    for number, layer in enumerate(network.attending):
        one, prefix = np.ones(hidden, np.float32), f"model.layers.{number}"
        found[f"{prefix}.post_attention_layernorm.weight"] = one * (layer.out_gain or 1)
        found[f"{prefix}.pre_feedforward_layernorm.weight"] = one
        found[f"{prefix}.post_feedforward_layernorm.weight"] = one
    return {name: tensor - 1 if "norm.weight" in name else tensor for name, tensor in found.items()}


GEMMA3 = Architecture(
    "gemma3",
    {"full": GLOBAL, "window": LOCAL},
    _config,
    _tensors,
    norms="before",
    out_norm=True,
    scaled_embedding=True,
)
