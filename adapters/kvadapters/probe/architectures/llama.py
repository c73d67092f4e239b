"""Llama, Mistral and Qwen3: one shape of network, with windows or with norms of queries and keys."""

from __future__ import annotations

import numpy as np

from kvadapters.probe.architecture import FEED_FORWARD, Architecture, Config, Tensors, size_of, types
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.network import Layer, Network

THETA = 10000.0


def tensors(network: Network) -> Tensors:
    """Give the tensors under the names that most architectures use. Linear layers have no attention."""
    hidden = network.embedding.shape[1]
    found: Tensors = {
        "model.embed_tokens.weight": network.embedding,
        "model.norm.weight": np.ones(hidden, np.float32),
        "lm_head.weight": network.output,
    }
    for number, layer in enumerate(network.layers):
        parts = (attention(layer) if isinstance(layer, Layer) else {}) | feed_forward(hidden) | norms(hidden)
        found |= {f"model.layers.{number}.{name}.weight": tensor for name, tensor in parts.items()}
    return found


def attention(layer: Layer) -> Tensors:
    """Give the four projections, and the gains of normed queries and keys."""
    parts = {"q": layer.query, "k": layer.key, "v": layer.value, "o": layer.out}
    found = {f"self_attn.{name}_proj": part for name, part in parts.items()}
    for name, gain in zip("qk", layer.gains or (), strict=False):
        found[f"self_attn.{name}_norm"] = np.full(HEAD_DIM, gain, np.float32)
    return found


def feed_forward(hidden: int) -> Tensors:
    """Give a feed-forward part that adds zero."""
    return {
        "mlp.gate_proj": np.zeros((FEED_FORWARD, hidden), np.float32),
        "mlp.up_proj": np.zeros((FEED_FORWARD, hidden), np.float32),
        "mlp.down_proj": np.zeros((hidden, FEED_FORWARD), np.float32),
    }


def norms(hidden: int) -> Tensors:
    """Give the two norms of a layer, which multiply by 1."""
    one = np.ones(hidden, np.float32)
    return {"input_layernorm": one, "post_attention_layernorm": one}


def _config(kind: str) -> Config:
    name = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen3": "Qwen3ForCausalLM"}[kind]
    return {
        "architectures": [name],
        "model_type": kind,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": THETA,
        "attention_bias": False,
    }


def _llama(_: Layout) -> Config:
    return _config("llama") | {"mlp_bias": False}


def _mistral(layout: Layout) -> Config:
    return _config("mistral") | {"sliding_window": size_of(layout, "window")}


def _qwen3(layout: Layout) -> Config:
    window = size_of(layout, "window")
    more = {"use_sliding_window": window is not None, "sliding_window": window, "max_window_layers": 0}
    return _config("qwen3") | more | {"layer_types": types(layout)}


LLAMA = Architecture("llama", {"full": THETA}, _llama, tensors)
MISTRAL = Architecture("mistral", {"full": THETA, "window": THETA}, _mistral, tensors, alike=True)
QWEN3 = Architecture("qwen3", {"full": THETA, "window": THETA}, _qwen3, tensors, norms="before")
