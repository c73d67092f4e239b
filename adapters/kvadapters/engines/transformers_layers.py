"""Hugging Face transformers: `DynamicCache` and `StaticCache` of several layers, with the masks of `masking_utils`.

What a model does with a layer of linear attention stands here: it hands its rows to the convolution first. Then it
takes the state out of the cache, folds the rows into it, and puts it back. A step of one row writes the rows of the
convolution where they are, as the models do, unless the cache records its past.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache as cached
from typing import Any, NamedTuple

from kvadapters.engines.transformers import CROP, PAST, ROWS, STATIC_CROP, or_kernels
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

KERNEL = 4
"""The rows of the convolution in front of a state, as most models have it."""


class Layers(NamedTuple):
    """What a view is called in a config, where its size stands, and which function makes its mask."""

    type: str
    size: str = ""
    mask: Any = None


VIEWS = {
    "full": Layers("full_attention", "", masking_utils.create_causal_mask),
    "window": Layers("sliding_attention", "sliding_window", masking_utils.create_sliding_window_causal_mask),
    "chunk": Layers("chunked_attention", "attention_chunk_size", masking_utils.create_chunked_causal_mask),
    "state": Layers("linear_attention"),
    "conv": Layers("conv"),
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


def updated(model: Model, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Do what the layer of a model does with its cache. One that folds tokens has no rows to attend to."""
    name, sizes = model.of[layer]
    if name == "state":
        return folded(model.cache, layer, keys, values)
    if name == "conv":
        return convolved(model.cache, layer, sizes[0], keys, values)
    found: tuple[Any, Any] = model.cache.update(keys, values, layer)
    return found


def folded(cache: Any, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Hand the rows to the convolution, then fold them into the state: the arithmetic is the model's."""
    state = cache.get_recurrent_state(layer)
    filtered(cache, layer, KERNEL, torch.cat([channels(keys), channels(values)], dim=1))
    k, v = keys.float(), values.float()
    state = torch.zeros(*k.shape[:2], k.shape[3], v.shape[3]) if state is None else state
    for t in range(k.shape[2]):
        state = state / 2 + k[:, :, t, :, None] * v[:, :, t, None, :]
    cache.update_recurrent_state(state, layer)
    return keys[:, :, :0], values[:, :, :0]


def convolved(cache: Any, layer: int, size: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """The rows that the convolution of `size` takes, zeros before the first: `[1, heads, size - 1 + n, dim]`."""
    rows = filtered(cache, layer, size, torch.cat([channels(keys), channels(values)], dim=1))
    wanted = size - 1 + keys.shape[2]
    whole = torch.nn.functional.pad(rows, (wanted, 0))[..., rows.shape[-1] :]
    split = keys.shape[1] * keys.shape[3]
    return heads(whole[:, :split], keys.shape[1]), heads(whole[:, split:], values.shape[1])


def filtered(cache: Any, layer: int, size: int, rows: Any) -> Any:
    """Give the rows of the convolution and these behind them, as many as the cache has: `[1, channels, width]`."""
    kept = cache.get_conv_state(layer)
    if kept is None or rows.shape[-1] != 1 or cache.is_recording_past(layer):
        return cache.update_conv_state(rows, layer, conv_kernel_size=size)
    whole = torch.cat([kept, rows], dim=-1)
    kept.copy_(whole[..., -kept.shape[-1] :])
    return whole


def channels(rows: Any) -> Any:
    """Rows `[1, heads, n, dim]` as `[1, heads * dim, n]`."""
    return rows.transpose(2, 3).flatten(1, 2)


def heads(rows: Any, n: int) -> Any:
    """The reverse, of so many heads."""
    return rows.unflatten(1, (n, -1)).transpose(2, 3)


def counted(model: Model) -> int | None:
    """The length of the first layer with rows to attend to; a cache of others counts none."""
    if all(name in ("state", "conv") for name, _ in model.of):
        return None
    return int(model.cache.get_seq_length())


def states(model: Model) -> dict[int, Any]:
    """Copies of the states of the layers that have one: a model folds the cache's own, and hands none out."""
    found = {i: model.cache.get_recurrent_state(i) for i, (name, _) in enumerate(model.of) if name == "state"}
    return {i: None if state is None else state[0].clone() for i, state in found.items()}


def layer_mask(model: Model, layer: int, n: int) -> Any:
    """Make the mask of a layer for n queries, before the updates."""
    name, sizes = model.of[layer]
    if name == "state":
        return torch.zeros(n, 0, dtype=torch.bool)
    if name == "conv":
        return torch.ones(n, sizes[0] - 1 + n, dtype=torch.bool).triu().tril(sizes[0] - 1)
    found = VIEWS[name].mask(
        config=model.configs[layer],
        inputs_embeds=torch.empty(1, n, 1),
        attention_mask=None,
        layer_idx=layer,
        **{PAST: model.cache},
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
        update=updated,
        length=counted,
        states=states,
        mask=layer_mask,
        reset=lambda model: model.cache.reset(),
        state=lambda model: deepcopy(model.cache),
        set_state=put_back,
        also=(*VIEWS, "unlike", "zero", "scribble"),
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
    dialect={"layers.shape": "first append, for good", "layers.spare": 1, "layers.resumes": "whole"},
    limits={"rows": ROWS},
    **STATIC_CROP,
)
