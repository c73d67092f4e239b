"""One linear layer of Qwen3-Next from the tensors of a GGUF file, a token at a time, as llama.cpp computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Tensors = Mapping[str, Any]


def given(values: Mapping[str, Any], tensors: Tensors, rows: Any, dtype: type = np.float64) -> Any:
    """Give what the first layer adds to hidden states [n, hidden], computed in a dtype."""
    rows = rows.astype(dtype)
    eps, wide = values["qwen3next.attention.layer_norm_rms_epsilon"], values["qwen3next.ssm.state_size"]
    keys, heads = values["qwen3next.ssm.group_count"], values["qwen3next.ssm.time_step_rank"]
    own = {name: tensors[f"blk.0.{name}"].astype(dtype) for name in NAMES}
    normed = rms(rows, eps) * own["attn_norm.weight"]
    mixed = silu(convolved(normed @ own["attn_qkv.weight"].T, own["ssm_conv1d.weight"]))
    queries, at, held = np.split(mixed.reshape(len(rows), -1, wide), [keys, 2 * keys], axis=1)
    shares, rates = np.split((normed @ own["ssm_ba.weight"].T).reshape(len(rows), keys, -1), 2, axis=2)
    writes = 1 / (1 + np.exp(-shares.reshape(len(rows), heads)))
    faded = np.exp(own["ssm_a"] * np.log1p(np.exp(rates.reshape(len(rows), heads) + own["ssm_dt.bias"])))
    queries, at = (np.repeat(unit(x), heads // keys, axis=1) for x in (queries, at))
    out = remembered(queries * wide**-0.5, at, held, faded, writes)
    gates = silu((normed @ own["attn_gate.weight"].T).reshape(out.shape))
    return (rms(out, eps) * own["ssm_norm.weight"] * gates).reshape(len(rows), -1) @ own["ssm_out.weight"].T


NAMES = (
    *("attn_norm.weight", "attn_qkv.weight", "attn_gate.weight", "ssm_conv1d.weight", "ssm_ba.weight"),
    *("ssm_a", "ssm_dt.bias", "ssm_norm.weight", "ssm_out.weight"),
)


def remembered(queries: Any, keys: Any, rows: Any, faded: Any, writes: Any) -> Any:
    """Let each token fade each head's state, replace what its key holds, and read by its query; all are
    [n, heads, wide], or [n, heads]."""
    state, found = np.zeros((rows.shape[1], rows.shape[2], rows.shape[2]), rows.dtype), []
    for query, key, row, fade, write in zip(queries, keys, rows, faded, writes, strict=True):
        state = state * fade[:, None, None]
        change = (row - np.einsum("hkv,hk->hv", state, key)) * write[:, None]
        state = state + key[:, :, None] * change[:, None]
        found.append(np.einsum("hkv,hk->hv", state, query))
    return np.array(found)


def convolved(rows: Any, taps: Any) -> Any:
    """Weigh the newest tokens of each channel, the newest last."""
    size = taps.shape[1]
    before = np.concatenate([np.zeros((size - 1, rows.shape[1]), rows.dtype), rows])
    return sum(before[i : i + len(rows)] * taps[:, i] for i in range(size))


def rms(x: Any, eps: float) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def unit(x: Any) -> Any:
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-12)


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))
