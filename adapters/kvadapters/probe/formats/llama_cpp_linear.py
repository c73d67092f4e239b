"""What llama.cpp calls the parts of Qwen3-Next's linear layers. Its heads of keys are as wide as those of values:
keys get zeros behind them. It has experts alone: they add zero."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kvadapters.probe.architecture import Tensors
from kvadapters.probe.arrays import Array
from kvadapters.probe.formats.gguf import Value
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.views import CONVOLUTION

KEYS, HEADS = 2, 4
"""Heads of keys, and of values."""
EXPERTS, WIDTH = 2, 32
"""Experts of a layer, and dimensions of one: what quantised matrices would need, though none is."""

NAMES = (
    ("linear_attn.in_proj_ba", "ssm_ba"),
    ("linear_attn.conv1d", "ssm_conv1d"),
    ("linear_attn.norm", "ssm_norm"),
    ("linear_attn.out_proj", "ssm_out"),
    ("linear_attn.dt", "ssm_dt"),
    ("linear_attn.A_log", "ssm_a"),
)


def values(layout: Layout, eps: float) -> Mapping[str, Value]:
    """Give what a header says of linear layers and of experts. Queries are divided by the root of a key's width: a
    smaller number under each norm makes good that keys are wider here."""
    row, wide = _widths(layout)
    return {
        "attention.layer_norm_rms_epsilon": eps * row / wide,
        "attention.recurrent_layers": [view.kind == "linear" for view in layout.layers],
        "ssm.conv_kernel": CONVOLUTION.size,
        "ssm.inner_size": HEADS * wide,
        "ssm.state_size": wide,
        "ssm.time_step_rank": HEADS,
        "ssm.group_count": KEYS,
        "expert_count": EXPERTS,
        "expert_used_count": 1,
        "expert_feed_forward_length": WIDTH,
        "expert_shared_feed_forward_length": WIDTH,
    }


def _widths(layout: Layout) -> tuple[int, int]:
    """Give the width of a head of keys, and of values."""
    row = HEAD_DIM * layout.kv_heads
    return row, row + layout.prints


def changed(layout: Layout, tensors: Tensors) -> Tensors:
    """Give the tensors that llama.cpp has: norms with their 1, heads in one order, experts."""
    found: Tensors = {}
    for name, tensor in tensors.items():
        if name.endswith("in_proj_qkvz.weight"):
            prefix = name.removesuffix("linear_attn.in_proj_qkvz.weight")
            found |= {f"{prefix}{part}.weight": each for part, each in _projections(layout, tensor).items()}
        elif ".mlp." not in name:
            found[name.replace("dt_bias", "dt.bias")] = _other(layout, name, tensor)
    for number in range(len(layout.layers)):
        found |= {f"model.layers.{number}.{name}": tensor for name, tensor in _experts(layout.hidden).items()}
    return found


def _projections(layout: Layout, given: Array) -> Tensors:
    """Give all queries, keys and values, [2 * KEYS * wide + HEADS * wide, hidden], and their gates apart. They come
    as queries, keys, values and gates of one head of keys after the other."""
    row, wide = _widths(layout)
    several = HEADS // KEYS * wide
    groups = given.reshape(KEYS, -1, given.shape[-1])
    queries, keys, rows, gates = np.split(groups, np.cumsum([row, row, several]), axis=1)
    parts = [_padded(queries, wide), _padded(keys, wide), rows]
    return {"attn_qkv": np.concatenate([_flat(part) for part in parts]), "attn_gate": _flat(gates)}


def _padded(heads: Array, wide: int) -> Array:
    """Widen heads [KEYS, row, n] with zeros."""
    return np.pad(heads, ((0, 0), (0, wide - heads.shape[1]), (0, 0)))


def _flat(heads: Array) -> Array:
    return heads.reshape(-1, heads.shape[-1])


def _other(layout: Layout, name: str, tensor: Array) -> Array:
    row, wide = _widths(layout)
    if name.endswith("A_log"):
        return -np.exp(tensor)
    if name.endswith("conv1d.weight"):
        keys, rows = np.split(tensor[:, 0], [2 * KEYS * row])
        return np.concatenate([_flat(_padded(keys.reshape(2 * KEYS, row, -1), wide)), rows])
    return tensor + 1 if "norm.weight" in name and "linear_attn" not in name else tensor


def _experts(hidden: int) -> Tensors:
    """Give a layer's experts, and the one that all tokens share."""
    shapes = {
        "ffn_gate_inp": (EXPERTS, hidden),
        "ffn_gate_exps": (EXPERTS, WIDTH, hidden),
        "ffn_up_exps": (EXPERTS, WIDTH, hidden),
        "ffn_down_exps": (EXPERTS, hidden, WIDTH),
        "ffn_gate_inp_shexp": (hidden,),
        "ffn_gate_shexp": (WIDTH, hidden),
        "ffn_up_shexp": (WIDTH, hidden),
        "ffn_down_shexp": (hidden, WIDTH),
    }
    return {f"{name}.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()}
