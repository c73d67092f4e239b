"""Hugging Face transformers: `DynamicCache` and `StaticCache` of one layer and of several, with the masks of
`masking_utils`.

The masks are those for the attention "sdpa", the default: boolean, or none where that attention needs no mask or
makes a causal one. Not claimed: who owns arrays. `update` returns the tensors of the cache itself.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache as cached
from typing import Any, NamedTuple

from kvadapters.layered import LayeredCache, views
from kvadapters.update import UpdateAdapter
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    import transformers
    from transformers import masking_utils

    from kvadapters.engines.torch import adapter as torch_adapter
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

ROWS = 768
"""The least length of static caches with a window. They keep no more rows than their length."""


@dataclass(frozen=True)
class Cache:
    """A cache of one layer, and what a model knows when it asks for the mask."""

    cache: Any
    batch: int
    window: int | None


@cached
def model_config(window: int | None) -> Any:
    """The config of a model of one layer, with a sliding window if there is one."""
    config = transformers.MistralConfig(num_hidden_layers=1, sliding_window=window)
    config._attn_implementation = "sdpa"
    return config


def dynamic(config: Config) -> Cache:
    """Make a `DynamicCache`; with a window its layer is a sliding one."""
    found = transformers.DynamicCache(config=model_config(config.window))
    return Cache(found, config.batch, config.window)


def static(config: Config) -> Cache:
    """Make a `StaticCache`, as long as the bound if there is one."""
    length = max(ROWS, config.window or 0) if config.max_len is None else config.max_len
    found = transformers.StaticCache(config=model_config(config.window), max_cache_len=length)
    return Cache(found, config.batch, config.window)


def mask(cache: Cache, n: int) -> Any:
    """Make the mask as a model does, before the update."""
    make = masking_utils.create_sliding_window_causal_mask if cache.window else masking_utils.create_causal_mask
    found = make(
        config=model_config(cache.window),
        inputs_embeds=torch.empty(cache.batch, n, 1),
        attention_mask=None,
        past_key_values=cache.cache,
    )
    return or_kernels(found, cache.cache, 0, n)


def or_kernels(mask: Any, cache: Any, layer: int, n: int) -> Any:
    """For None and several queries sdpa makes a causal mask, aligned at the upper left."""
    if mask is None and n > 1:
        columns, _ = cache.get_mask_sizes(n, layer)
        return torch.ones(n, columns, dtype=torch.bool).tril()
    return mask


def adapter(name: str, kind: str, make: Any, **functions: Any) -> UpdateAdapter:
    """Make the adapter of one class of cache."""
    return torch_adapter(
        f"transformers-{name}",
        "transformers",
        kind=kind,
        make=make,
        update=lambda cache, keys, values: cache.cache.update(keys, values, 0),
        length=lambda cache: cache.cache.get_seq_length(),
        mask=mask,
        reset=lambda cache: cache.cache.reset(),
        **functions,
    )


CROP = {"trim": lambda cache, n: cache.cache.crop(-n)}
"""`crop` removes rows if it gets their number as a negative number. Static caches cannot remove rows."""
CROPPED = {"growing.shape": "first append", "growing.range": "clamped at 0"}
"""The caches take the geometry of the first rows, and crop all rows if asked for more than there are."""
SLIDES = {
    "ring.shape": "first append",
    "ring.range": "clamped at 0",
    "ring.rewind": "below",
    "ring.keeps": "window - 1",
}
"""A full sliding cache has dropped its oldest row, and cannot be cropped."""

growing = adapter("dynamic", "growing", dynamic, dialect=CROPPED, **CROP)
sliding = adapter("sliding", "ring", dynamic, dialect=SLIDES, **CROP)
bounded = adapter("static", "bounded", static, dialect={"bounded.shape": "first append, for good"})
static_sliding = adapter("static-sliding", "ring", static, dialect={"ring.shape": "first append, for good"})


class Layers(NamedTuple):
    """What a view is called in a config, where its size stands, and which function makes its mask."""

    type: str
    size: str
    mask: Any


VIEWS = {
    "full": Layers("full_attention", "", masking_utils.create_causal_mask),
    "window": Layers("sliding_attention", "sliding_window", masking_utils.create_sliding_window_causal_mask),
    "chunk": Layers("chunked_attention", "attention_chunk_size", masking_utils.create_chunked_causal_mask),
}


@cached
def layered_config(of: tuple[tuple[str, tuple[int, ...]], ...]) -> Any:
    """The config of a model with these layers, each with a size of its own."""
    names = [view.size for view in VIEWS.values() if view.size]
    each = {
        i: {size: sizes[0] if size == VIEWS[name].size else None for size in names}
        for i, (name, sizes) in enumerate(of)
    }
    types = [VIEWS[name].type for name, _ in of]
    config = transformers.MinistralConfig(num_hidden_layers=len(of), layer_types=types, per_layer_config=each)
    config._attn_implementation = "sdpa"
    return config


class Model(NamedTuple):
    """A cache of several layers, and the config of each layer, from which a model makes its mask."""

    cache: Any
    configs: Any
    of: list[tuple[str, tuple[int, ...]]]


def layered(make: Callable[[Any], Any]) -> Callable[[Config], Model]:
    """Make the cache of a model with layers of several types."""

    def made(config: Config) -> Model:
        of = views(config, *VIEWS)
        model = layered_config(tuple(of))
        return Model(make(model), model.per_layer_config, of)

    return made


def layer_mask(model: Model, layer: int, n: int) -> Any:
    """Make the mask of a layer for n queries, before the updates."""
    found = VIEWS[model.of[layer][0]].mask(
        config=model.configs[layer],
        inputs_embeds=torch.empty(1, n, 1),
        attention_mask=None,
        past_key_values=model.cache,
        layer_idx=layer,
    )
    return or_kernels(found, model.cache, layer, n)


def recording(config: Any) -> Any:
    """A cache that keeps all rows until it is cropped, as assisted generation has it."""
    cache = transformers.DynamicCache(config=config)
    cache.activate_past_recording()
    return cache


def put_back(model: Model, saved: Any) -> None:
    """Take a copy of a saved cache, as one does for each continuation of a prompt."""
    vars(model.cache).update(vars(deepcopy(saved)))


def layers_adapter(name: str, make: Any, **given: Any) -> UpdateAdapter:
    """Make the adapter of a class of caches of several layers. It has none for a layer that shares rows."""
    return torch_adapter(
        f"transformers-{name}",
        "transformers",
        kind="layers",
        make=layered(make),
        update=lambda model, layer, keys, values: model.cache.update(keys, values, layer),
        length=lambda model: model.cache.get_seq_length(),
        mask=layer_mask,
        reset=lambda model: model.cache.reset(),
        state=lambda model: deepcopy(model.cache),
        set_state=put_back,
        also=("full", "window", "chunk", "unlike"),
        cache=LayeredCache,
        **given,
    )


LAYERS = {"layers.shape": "first append", "layers.range": "clamped at 0"}
layers = layers_adapter(
    "layers",
    lambda config: transformers.DynamicCache(config=config),
    dialect=LAYERS | {"layers.resumes": "whole"},
    **CROP,
)
layers_recording = layers_adapter("layers-recording", recording, dialect=LAYERS | {"layers.spare": "any"}, **CROP)
layers_static = layers_adapter(
    "layers-static",
    lambda config: transformers.StaticCache(config=config, max_cache_len=ROWS),
    dialect={"layers.shape": "first append, for good"},
    limits={"rows": ROWS},
)
