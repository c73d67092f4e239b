"""What llama.cpp calls the parts of a probe, and which layers it can have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kvadapters.probe.architecture import FEED_FORWARD, Architecture, Tensors, period, size_of
from kvadapters.probe.architectures import llama4
from kvadapters.probe.architectures.gemma3 import LOCAL
from kvadapters.probe.architectures.gpt_oss import EXPERTS, WIDTH
from kvadapters.probe.formats import llama_cpp_latent, llama_cpp_linear
from kvadapters.probe.formats.gguf import Value
from kvadapters.probe.formats.tokenizer import END
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvspec.errors import BadInput

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.sinks": "attn_sinks.weight",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.router": "ffn_gate_inp",
}


@dataclass(frozen=True)
class Dialect:
    """How llama.cpp reads an architecture: by which name, with which other names of tensors, and with which
    changes to them."""

    name: str
    changed: Callable[[Layout, Tensors], Tensors]
    names: tuple[tuple[str, str], ...] = ()
    windows: bool = False
    """Whether layers may have windows. They come in a period, whose last layer is full."""
    values: Callable[[Layout, float], Mapping[str, Value]] = lambda layout, eps: {}
    """What its header says beside the sizes that all have."""


def _as_they_are(_: Layout, tensors: Tensors) -> Tensors:
    return tensors


def _neighbours(layout: Layout, tensors: Tensors) -> Tensors:
    """Put the two dimensions of each pair of RoPE next to each other."""
    order = np.arange(HEAD_DIM).reshape(2, -1).T.ravel()
    return {
        name: tensor.reshape(-1, HEAD_DIM, tensor.shape[-1])[:, order].reshape(tensor.shape)
        if re.search(r"\.[qk]_proj\.", name)
        else tensor
        for name, tensor in tensors.items()
    }


def _whole_norms(_: Layout, tensors: Tensors) -> Tensors:
    """Add the 1 that Gemma 3 adds to the weights of norms."""
    return {name: tensor + 1 if "norm.weight" in name else tensor for name, tensor in tensors.items()}


def _experts(layout: Layout, tensors: Tensors) -> Tensors:
    """Give experts, which add zero, their names; gates and projections are apart."""
    found = {name: tensor for name, tensor in tensors.items() if ".experts." not in name}
    for number in range(len(layout.layers)):
        for part, shape in (
            ("gate", (EXPERTS, WIDTH, layout.hidden)),
            ("up", (EXPERTS, WIDTH, layout.hidden)),
            ("down", (EXPERTS, layout.hidden, WIDTH)),
        ):
            found[f"model.layers.{number}.ffn_{part}_exps.weight"] = np.zeros(shape, np.float32)
            found[f"model.layers.{number}.ffn_{part}_exps.bias"] = np.zeros(shape[:2], np.float32)
    return found


CHUNK, CHUNKS_PERIOD = 8192, 4
"""llama.cpp has Llama 4's chunks of one size, and a full layer without RoPE behind each three layers of them."""


def _chunks(_: Layout, eps: float) -> Mapping[str, Value]:
    """Say that there are experts, as llama.cpp wants it of each Llama 4, and that no layer has them."""
    experts = {"expert_count": 1, "expert_used_count": 1, "expert_feed_forward_length": FEED_FORWARD}
    return {**experts, "interleave_moe_layer_step": 0, "rope.freq_base": llama4.THETA}


DIALECTS = {
    "llama": Dialect("llama", _neighbours),
    "mistral": Dialect("llama", _neighbours),
    "qwen3": Dialect("qwen3", _as_they_are),
    "phi3": Dialect("phi3", _as_they_are, (("self_attn.qkv_proj", "attn_qkv"), ("mlp.gate_up_proj", "ffn_up"))),
    "gemma3": Dialect(
        "gemma3",
        _whole_norms,
        (
            ("post_attention_layernorm", "post_attention_norm"),
            ("pre_feedforward_layernorm", "ffn_norm"),
            ("post_feedforward_layernorm", "post_ffw_norm"),
        ),
        windows=True,
    ),
    "gpt-oss": Dialect("gpt-oss", _experts, (("post_attention_layernorm", "post_attention_norm"),), windows=True),
    "llama4": Dialect(
        "llama4",
        _as_they_are,
        tuple((f"feed_forward.{part}_proj", f"ffn_{part}") for part in ("gate", "up", "down")),
        values=_chunks,
    ),
    "qwen3-next": Dialect(
        "qwen3next",
        llama_cpp_linear.changed,
        (("post_attention_layernorm", "post_attention_norm"), *llama_cpp_linear.NAMES),
        values=llama_cpp_linear.values,
    ),
    "deepseek": Dialect(
        "deepseek2", llama_cpp_latent.changed, llama_cpp_latent.NAMES, values=llama_cpp_latent.values
    ),
}


def dialect(architecture: Architecture, layout: Layout) -> Dialect:
    """Give how llama.cpp takes a probe. Raises BadInput where it cannot."""
    found = DIALECTS[architecture.name]
    if found.name == "llama4" and (period(layout, "chunk"), size_of(layout, "chunk")) != (CHUNKS_PERIOD, CHUNK):
        raise BadInput(f"llama.cpp has Llama 4 with chunks of {CHUNK} alone: --layers '3*chunk {CHUNK},full'")
    if not found.windows and size_of(layout, "window"):
        raise BadInput(f"llama.cpp knows no windows of {architecture.name}: all layers are full in a GGUF")
    if period(layout) is None:
        layers = ", ".join(map(str, layout.layers))
        raise BadInput(
            f"llama.cpp has windows in a period, whose last layer is full, or in all layers: not {layers}"
        )
    return found


def values(architecture: Architecture, layout: Layout) -> dict[str, Value]:
    """Give the keys and values of a GGUF."""
    name, window = dialect(architecture, layout).name, size_of(layout, "window")
    found: dict[str, Value] = {
        "context_length": 1 << 17,
        "embedding_length": layout.hidden,
        "block_count": len(layout.layers),
        "feed_forward_length": FEED_FORWARD,
        "vocab_size": layout.vocabulary,
        "attention.head_count": layout.heads,
        "attention.head_count_kv": layout.kv_heads,
        "attention.key_length": HEAD_DIM,
        "attention.value_length": HEAD_DIM,
        "attention.layer_norm_rms_epsilon": architecture.eps,
        "rope.dimension_count": HEAD_DIM,
        "rope.freq_base": float(architecture.theta["full"] or 0),
    }
    if DIALECTS[architecture.name].windows:
        size = window or (4096 if architecture.sink is not None else 0)
        found |= {"attention.sliding_window": size, "attention.sliding_window_pattern": period(layout) or 0}
    if architecture.name == "gemma3":
        found |= {"rope.freq_base_swa": LOCAL}
    if architecture.name == "gpt-oss":
        found |= {"expert_count": EXPERTS, "expert_used_count": 1, "expert_feed_forward_length": WIDTH}
    found |= DIALECTS[architecture.name].values(layout, architecture.eps)
    general: dict[str, Value] = {"general.architecture": name, "general.name": "kvconform probe"}
    return general | {f"{name}.{key}": value for key, value in found.items()} | _vocabulary(list(layout.words()))


def _vocabulary(words: Sequence[str]) -> dict[str, Value]:
    """Give a tokenizer of words between blanks, each with one score: llama.cpp's `UGM`, which writes a blank before
    a word as U+2581."""
    special = ("eos", "unknown", "padding")
    return {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": [f"\u2581{word}" for word in words],
        "tokenizer.ggml.scores": [-1.0] * len(words),
        **{f"tokenizer.ggml.{name}_token_id": words.index(END) for name in special},
        **{f"tokenizer.ggml.add_{name}_token": False for name in ("bos", "eos")},
        "tokenizer.ggml.add_space_prefix": True,
    }


def tensors(architecture: Architecture, layout: Layout, given: Tensors) -> Tensors:
    """Give tensors under llama.cpp's names."""
    found = dialect(architecture, layout)
    names = NAMES | dict(found.names)
    return {_named(name, names): tensor for name, tensor in found.changed(layout, given).items()}


def _named(name: str, names: dict[str, str]) -> str:
    layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
    prefix, rest = (f"blk.{layer[1]}.", layer[2]) if layer else ("", name)
    stem, ending = (
        (rest[: -len(e)], e) if (e := "." + rest.rpartition(".")[2]) in (".weight", ".bias") else (rest, "")
    )
    return f"{prefix}{names.get(stem, stem)}{ending}"
