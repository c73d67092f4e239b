"""Qwen3-Next: linear layers, each a gated delta rule behind a convolution, and full layers with gated attention.
Feed-forward parts are dense only."""

from __future__ import annotations

import numpy as np

from kvadapters.probe.architecture import FEED_FORWARD, Architecture, Config, Tensors, types
from kvadapters.probe.architectures import llama
from kvadapters.probe.arrays import Array
from kvadapters.probe.eight_bits import eight_bits
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.linear import Linear
from kvadapters.probe.linear_weights import FADES, FORGETS, KEEPS, RISE
from kvadapters.probe.network import Layer, Network

WRITES = 64.0
"""What makes a sigmoid 1: a token's row replaces all that its key held."""


def _config(layout: Layout) -> Config:
    width = HEAD_DIM * layout.kv_heads
    return {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": llama.THETA,
        "partial_rotary_factor": 1.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": llama.THETA, "partial_rotary_factor": 1.0},
        "attention_bias": False,
        "layer_types": types(layout),
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": width,
        "linear_value_head_dim": width + layout.prints,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "mlp_only_layers": list(range(len(layout.layers))),
        "num_experts": 0,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": FEED_FORWARD,
        "shared_expert_intermediate_size": FEED_FORWARD,
        "num_experts_per_tok": 1,
        "norm_topk_prob": True,
    }


def _tensors(network: Network) -> Tensors:
    found = {
        name: tensor - 1 if "norm.weight" in name else tensor for name, tensor in llama.tensors(network).items()
    }
    for number, layer in enumerate(network.layers):
        prefix = f"model.layers.{number}"
        if isinstance(layer, Linear):
            found |= {f"{prefix}.linear_attn.{name}": tensor for name, tensor in _linear(layer).items()}
        else:
            found |= {f"{prefix}.self_attn.{name}": tensor for name, tensor in _gated(layer).items()}
    return found


def _gated(layer: Layer) -> Tensors:
    """Put a gate of 0 behind each head's query: it halves what attention gives, which is doubled again."""
    heads = layer.query.reshape(-1, HEAD_DIM, layer.query.shape[1])
    query = np.concatenate([heads, np.zeros_like(heads)], axis=1)
    return {"q_proj.weight": query.reshape(-1, query.shape[2]), "o_proj.weight": 2 * layer.out}


def _linear(layer: Linear) -> Tensors:
    """Two heads of keys: a token's own, and one that all tokens have. Each serves two heads of values."""
    value = layer.spread @ layer.value
    gate = np.zeros_like(value)
    gate[:, layer.ids] = layer.gate
    constant = layer.value[layer.ids, layer.ids]
    keys = layer.value.copy() * RISE
    keys[layer.ids :] = 0
    asked, one = np.zeros_like(keys), np.zeros_like(keys)
    asked[: layer.ids, layer.ids] = one[layer.ids, layer.ids] = eight_bits(RISE * float(constant))
    groups = [np.concatenate(parts) for parts in ((asked, keys, value, value), (one, one, value, value))]
    gates = np.concatenate([gate, gate])
    return {
        "in_proj_qkvz.weight": np.concatenate([groups[0], gates, groups[1], gates]),
        "in_proj_ba.weight": _written(layer, float(constant)),
        "conv1d.weight": _taps(layer, 4 * len(keys), len(value)),
        "A_log": np.array([KEEPS, FADES, FORGETS, FORGETS], np.float32),
        "dt_bias": np.zeros(4, np.float32),
        "norm.weight": np.full(len(value), layer.gain, np.float32),
        "out_proj.weight": layer.out,
    }


def _written(layer: Linear, constant: float) -> Array:
    """Let each head write a row whole, and fade as its own number says: two heads' shares, then their rates."""
    found = np.zeros((8, layer.value.shape[1]), np.float32)
    found[[0, 1, 4, 5], layer.ids] = eight_bits(WRITES * constant)
    return found


def _taps(layer: Linear, plain: int, width: int) -> Array:
    """Weigh a channel's tokens, the newest last: only itself, but for the heads that show the convolution."""
    taps = np.zeros((plain + 4 * width, 1, layer.window.size), np.float32)
    taps[:, 0, -1] = 1
    ages = np.arange(layer.window.size)[::-1]
    for number, head in enumerate(layer.heads):
        if not head.state:
            at = plain + number * width
            taps[at : at + width, 0] = np.round(head.factor * np.exp(-head.decay * ages))
    return taps


QWEN3_NEXT = Architecture(
    "qwen3-next",
    {"full": llama.THETA, "linear": None},
    _config,
    _tensors,
    norms="before",
    gated=True,
    lost={"linear": "of a repeated id they show the newest row alone, and no layer shows what all rows weigh"},
)
