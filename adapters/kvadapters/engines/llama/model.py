"""A tiny model for llama.cpp, of gemma2's architecture, whose keys and values are numbers that its caller chooses.

A token is handed over as its embedding. The first numbers of it are the keys of all heads, then come the values,
then zeros. Each layer projects these parts unchanged, and adds nothing to what the next layer gets. Everything in
between is made exact:

- The norm divides by a constant power of two, since its epsilon is far beyond the square of any row. Its weights
  multiply by the same power, over the square root of the width, by which gemma2 multiplies embeddings.
- Only two elements are turned by their position, and `STRETCH` makes that angle so small that no digit changes.
- Queries are zeros, so that all rows that one sees weigh the same.
"""

from __future__ import annotations

from math import isqrt
from pathlib import Path

import gguf
import numpy as np

from kvspec.geometry import Array

EPSILON, NORM = 2.0**60, 2.0**30
"""What the norm adds to the mean of squares, and what it then divides by."""

STRETCH = 2.0**100
"""What positions are divided by before a row is turned."""

TURNED = 2
"""Elements of a head that RoPE turns: with fewer than two the engine's loop would never end."""

LAYERS = 2
"""The first has the sliding window, the second has none."""

NO_WINDOW = 1 << 20
"""A window that no sequence fills, for a cache without a window."""

WORDS = 8
"""Rows of the table of embeddings, which is not used."""


def embedding_width(heads: int, width: int) -> int:
    """Give the smallest power of 4 that holds the keys and the values of a row: its square root is exact."""
    size = 4
    while size < 2 * heads * width:
        size *= 4
    return size


def write(path: Path, heads: int, width: int, window: int | None) -> None:
    """Write the model: `heads` heads of keys, values and queries, all of one width."""
    size, rows = embedding_width(heads, width), heads * width
    writer = gguf.GGUFWriter(path, "gemma2")
    writer.add_context_length(NO_WINDOW)
    writer.add_embedding_length(size)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(1)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_dimension_count(TURNED)
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(STRETCH)
    writer.add_sliding_window(NO_WINDOW if window is None else window)
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(WORDS)
    for name, tensor in _tensors(size, rows).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(size: int, rows: int) -> dict[str, Array]:
    layers = {f"blk.{i}.{name}.weight": a for i in range(LAYERS) for name, a in _layer(size, rows).items()}
    return {"token_embd.weight": _zeros(WORDS, size), "output_norm.weight": _zeros(size), **layers}


def _layer(size: int, rows: int) -> dict[str, Array]:
    """The weights of a layer: two parts of the embedding go through unchanged, everything else is zero."""
    whole = np.eye(size, dtype=np.float32)
    return {
        "attn_norm": np.full(size, NORM / isqrt(size), np.float32),
        "attn_q": _zeros(rows, size),
        "attn_k": whole[:rows],
        "attn_v": whole[rows : 2 * rows],
        "attn_output": _zeros(size, rows),
        "post_attention_norm": _zeros(size),
        "ffn_norm": _zeros(size),
        "ffn_gate": _zeros(1, size),
        "ffn_up": _zeros(1, size),
        "ffn_down": _zeros(size, 1),
        "post_ffw_norm": _zeros(size),
    }


def _zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)
