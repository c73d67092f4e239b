"""Hugging Face transformers: caches with the rows of an encoder, which a layer of cross-attention sees.

`EncoderDecoderCache` keeps them in a cache of their own, as Whisper and T5Gemma have it; Mllama keeps those of an
image among its other layers. A decoder asks whether a layer has such rows. If it has, it takes no others.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.transformers.caches import CROP, PAST, or_kernels
from kvadapters.engines.transformers.layers import (
    LAYERS,
    VIEWS,
    WHOLE,
    Model,
    layer_mask,
    layered_config,
    layers_adapter,
)
from kvadapters.layered import views
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    import transformers
    from transformers import masking_utils
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e


def numbered(of: list[Any]) -> list[int]:
    """Where the layers of a decoder stand: those of its tokens in one cache, those of the encoder's in another."""
    return [sum((name == "cross") == (other == "cross") for other, _ in of[:i]) for i, (name, _) in enumerate(of)]


def encoder_decoder(config: Config) -> Model:
    """Make the two caches of a decoder: that of its tokens, and that of the encoder's rows, which has no window."""
    of = views(config, *VIEWS, "cross")
    model = layered_config(tuple((view,) for view in of if view[0] != "cross"))
    own, cross = transformers.DynamicCache(config=model), transformers.DynamicCache()
    return Model(transformers.EncoderDecoderCache(own, cross), model.per_layer_config, of, numbered(of))


def attended(model: Model, layer: int, keys: Any, values: Any) -> None:
    """Hand rows to the cache of the encoder, unless it has some of this layer."""
    at = model.at[layer]
    if not model.cache.is_updated.get(at):
        model.cache.cross_attention_cache.update(keys, values, at)
        model.cache.is_updated[at] = True


def kept(layers: Any, at: int) -> tuple[Any, Any] | None:
    """The rows of a layer, if there are some."""
    found = layers[at] if at < len(layers) else None
    return None if found is None or found.keys is None else (found.keys, found.values)


def cross_mask(model: Model, layer: int, n: int) -> Any:
    """Make the mask of a layer, before the updates: that of the encoder's rows as a decoder makes it."""
    if model.of[layer][0] != "cross":
        return layer_mask(model, layer, n)
    found = kept(model.cache.cross_attention_cache.layers, model.at[layer])
    return masking_utils.create_bidirectional_mask(
        config=model.configs[0],
        inputs_embeds=torch.empty(1, n, 1),
        attention_mask=None,
        encoder_hidden_states=torch.empty(1, 0 if found is None else found[0].shape[2], 1),
    )


def mllama(config: Config) -> Model:
    """Make the cache of Mllama."""
    of = views(config, "full", "cross")
    crossing = [i for i, (name, _) in enumerate(of) if name == "cross"]
    model = transformers.MllamaTextConfig(num_hidden_layers=len(of), cross_attention_layers=crossing)
    model._attn_implementation = "sdpa"
    return Model(transformers.DynamicCache(config=model), model, of, list(range(len(of))))


def first(model: Model) -> int:
    """The first layer of tokens, by which it is counted: no released model has one of an image before it."""
    return next(i for i, (name, _) in enumerate(model.of) if name == "full")


def mllama_mask(model: Model, layer: int, n: int) -> Any:
    """Make the one mask of all layers of tokens. That of an image hides what stands for none, and here nothing."""
    if model.of[layer][0] == "cross":
        return None
    found = masking_utils.create_causal_mask(
        config=model.configs,
        inputs_embeds=torch.empty(1, n, 1),
        attention_mask=None,
        layer_idx=first(model),
        **{PAST: model.cache},
    )
    return or_kernels(found, model.cache, layer, n)


layers_encoder_decoder = layers_adapter(
    "layers-encoder-decoder",
    make=encoder_decoder,
    mask=cross_mask,
    encode=attended,
    encoded=lambda model, layer: kept(model.cache.cross_attention_cache.layers, model.at[layer]),
    also=(*VIEWS, "cross", "unlike", "encode", "scribble"),
    dialect=LAYERS | WHOLE | {"layers.again": "kept"},
    **CROP,
)
layers_mllama = layers_adapter(
    "mllama",
    make=mllama,
    length=lambda model: model.cache.get_seq_length(first(model)),
    mask=mllama_mask,
    encode=lambda model, layer, keys, values: model.cache.update(keys, values, layer),
    encoded=lambda model, layer: kept(model.cache.layers, layer),
    also=("full", "cross", "unlike", "encode", "zero", "scribble"),
    dialect=LAYERS | {"layers.again": "joined"},
    **CROP,
)
