"""Hugging Face transformers: the rotary embeddings of released models, each with its model's own function that
applies them.

Which model it is follows from what is asked for: neighbours or halves that pair up, one position of a row or three.
All of them compute angles in f32, and have the tables of `modeling_rope_utils`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import Any

from kvadapters.rope_words import rope_words
from kvspec.contract import Rope
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Array

try:
    import torch
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

MODELS = {
    ("neox", None): ("gpt_neox", "GPTNeoXConfig", "GPTNeoXRotaryEmbedding"),
    ("norm", None): ("glm", "GlmConfig", "GlmRotaryEmbedding"),
    ("neox", False): ("glm4v_moe", "Glm4vMoeTextConfig", "Glm4vMoeTextRotaryEmbedding"),
    ("norm", False): ("glm4v", "Glm4vTextConfig", "Glm4vTextRotaryEmbedding"),
    ("neox", True): ("qwen3_5", "Qwen3_5TextConfig", "Qwen3_5TextRotaryEmbedding"),
    ("norm", True): ("hy_v4_vl", "HYV4VLTextConfig", "HYV4VLRotaryEmbedding"),
}
"""By the pairing, and by whether sections take turns: the module of a model, its config and its embedding."""

CONTEXT = 1 << 40
"""More positions than anybody asks for."""


@lru_cache(maxsize=64)
def embedding(rope: Rope, width: int) -> tuple[Any, Any]:
    """The rotary embedding of a model with heads of this width, and the function that applies it."""
    sections, dims = rope.sections, width if rope.dims is None else rope.dims
    model = MODELS.get((rope.pairing, None if sections is None else sections.interleaved))
    if model is None:
        raise Unsupported(f"no model has the pairing {rope.pairing} and {sections}")
    name, config, rotary = model
    part = dims / width if int(width * (dims / width)) == dims else math.nextafter(dims / width, 1)
    told = {**rope_words(rope.scaling), "rope_theta": float(rope.base), "partial_rotary_factor": part}
    if sections is not None:
        told |= {"mrope_section": list(sections[:3])}
    own = {"qk_rope_head_dim": width} if name == "hy_v4_vl" else {}
    made = getattr(import_module(f"transformers.models.{name}.configuration_{name}"), config)(
        hidden_size=width,
        num_attention_heads=1,
        head_dim=width,
        max_position_embeddings=CONTEXT,
        rope_parameters=told,
        **own,
    )
    code = import_module(f"transformers.models.{name}.modeling_{name}")
    return getattr(code, rotary)(made), code.apply_rotary_pos_emb


def turned(rows: Any, positions: Array, rope: Rope) -> Any:
    """Turn rows as a model does: cosines and sines in the type of the rows, then what its attention does."""
    rotary, apply = embedding(rope, rows.shape[3])
    handed = torch.from_numpy(positions)
    cosines, sines = rotary(rows, handed[None] if rope.sections is None else handed[:, None])
    return apply(rows, rows, cosines, sines)[1]
