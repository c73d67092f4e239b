"""Llama 4, its text part: chunk layers with RoPE and a norm behind it, and full layers without RoPE."""

from __future__ import annotations

from kvadapters.probe.architecture import FEED_FORWARD, Architecture, Config, Tensors, size_of, types
from kvadapters.probe.architectures import llama
from kvadapters.probe.layout import Layout
from kvadapters.probe.network import Network

THETA = 500_000.0


def _config(layout: Layout) -> Config:
    return {
        "architectures": ["Llama4ForCausalLM"],
        "model_type": "llama4_text",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": THETA,
        "attention_bias": False,
        "intermediate_size_mlp": FEED_FORWARD,
        "use_qk_norm": True,
        "moe_layers": [],
        "num_local_experts": 1,
        "num_experts_per_tok": 1,
        "no_rope_layers": [int(view.kind == "chunk") for view in layout.layers],
        "attention_chunk_size": size_of(layout, "chunk") or 8192,
        "layer_types": types(layout),
    }


def _tensors(network: Network) -> Tensors:
    return {name.replace(".mlp.", ".feed_forward."): tensor for name, tensor in llama.tensors(network).items()}


LLAMA4 = Architecture(
    "llama4",
    {"full": None, "chunk": THETA},
    _config,
    _tensors,
    neighbours=True,
    norms="after",
    lost={"full": "they have no RoPE, so that distances are not shown"},
)
