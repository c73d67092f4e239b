"""gpt-oss: full and window layers, biases, experts, and a learned sink in every head, which takes its share of
1."""

from __future__ import annotations

import numpy as np

from kvadapters.probe.architecture import Architecture, Config, Tensors, size_of, types
from kvadapters.probe.architectures import llama
from kvadapters.probe.layout import Layout
from kvadapters.probe.network import Layer, Network

THETA, EXPERTS, WIDTH = 150_000.0, 2, 32


def _config(layout: Layout) -> Config:
    return {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": THETA,
        "rope_scaling": {"rope_type": "default", "rope_theta": THETA},
        "attention_bias": True,
        "intermediate_size": WIDTH,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": 1,
        "swiglu_limit": 7.0,
        "sliding_window": size_of(layout, "window") or 128,
        "layer_types": types(layout),
    }


def _tensors(network: Network) -> Tensors:
    hidden = network.embedding.shape[1]
    found = {name: tensor for name, tensor in llama.tensors(network).items() if ".mlp." not in name}
    for number, layer in enumerate(network.attending):
        found |= {f"model.layers.{number}.{name}": part for name, part in (_more(network, layer, hidden)).items()}
    return found


def _more(network: Network, layer: Layer, hidden: int) -> Tensors:
    shapes: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.bias": layer.query.shape[:1],
        "self_attn.k_proj.bias": layer.key.shape[:1],
        "self_attn.v_proj.bias": layer.value.shape[:1],
        "self_attn.o_proj.bias": (hidden,),
        "mlp.router.weight": (EXPERTS, hidden),
        "mlp.router.bias": (EXPERTS,),
        "mlp.experts.gate_up_proj": (EXPERTS, hidden, 2 * WIDTH),
        "mlp.experts.gate_up_proj_bias": (EXPERTS, 2 * WIDTH),
        "mlp.experts.down_proj": (EXPERTS, WIDTH, hidden),
        "mlp.experts.down_proj_bias": (EXPERTS, hidden),
    }
    found: Tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return found | {"self_attn.sinks": np.full(network.heads, layer.sink, np.float32)}


GPT_OSS = Architecture("gpt-oss", {"full": THETA, "window": THETA}, _config, _tensors, sink=0.0)
