"""Hugging Face transformers: `DynamicCache` and `StaticCache` of several layers, with the masks of `masking_utils`.

A model may have an attention and a linear attention in one layer, whose cache has rows and states ("hybrid"). The
adapters of hybrid layers put a view with rows and one that folds, which stand side by side, into one such layer.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache as cached
from typing import Any, NamedTuple

from kvadapters.engines.transformers.caches import CROP, PAST, ROWS, STATIC_CROP, or_kernels
from kvadapters.engines.transformers.linear import convolved, folded
from kvadapters.layered import LayeredCache, View, views
from kvadapters.layered_drafts import DraftedLayers
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


class Layers(NamedTuple):
    """What a view is called in a config, where its size stands, which function makes its mask, and what a layer is
    called that folds tokens too."""

    type: str
    size: str = ""
    mask: Any = None
    hybrid: str = ""


VIEWS = {
    "full": Layers("full_attention", "", masking_utils.create_causal_mask, "hybrid"),
    "window": Layers(
        "sliding_attention", "sliding_window", masking_utils.create_sliding_window_causal_mask, "hybrid_sliding"
    ),
    "chunk": Layers("chunked_attention", "attention_chunk_size", masking_utils.create_chunked_causal_mask),
    "state": Layers("linear_attention"),
    "conv": Layers("conv"),
}
FOLDS = ("state", "conv")

Split = Callable[[list[View]], list[list[View]]]
"""Tells which views are in one layer."""


class Model(NamedTuple):
    """A cache of several layers, the config of each, from which a model makes its mask, the views, and in which
    layer each is."""

    cache: Any
    configs: Any
    of: list[View]
    at: list[int]

    @property
    def own(self) -> Any:
        """The cache of tokens: beside one of an encoder's rows, or the whole."""
        return getattr(self.cache, "self_attention_cache", self.cache)


def apart(of: list[View]) -> list[list[View]]:
    """A layer for each view."""
    return [[view] for view in of]


def paired(of: list[View]) -> list[list[View]]:
    """One layer for a view with rows and one that folds, side by side."""
    found: list[list[View]] = []
    for view in of:
        both = [*(found[-1] if found else []), view]
        hybrid = sum(name in FOLDS for name, _ in both) == 1 and any(VIEWS[name].hybrid for name, _ in both)
        if len(both) == 2 and hybrid:
            found[-1] = both
        else:
            found.append([view])
    return found


@cached
def layered_config(layers: tuple[tuple[View, ...], ...]) -> Any:
    """The config of a model with these layers, each with a size of its own."""
    names = [view.size for view in VIEWS.values() if view.size]
    each = {
        i: {size: next((s[0] for name, s in layer if size == VIEWS[name].size), None) for size in names}
        for i, layer in enumerate(layers)
    }
    types = [
        VIEWS[layer[0][0]].type if len(layer) == 1 else "".join(VIEWS[name].hybrid for name, _ in layer)
        for layer in layers
    ]
    config = transformers.MinistralConfig(num_hidden_layers=len(layers), layer_types=types, per_layer_config=each)
    config._attn_implementation = "sdpa"
    return config


def layered(make: Callable[[Any], Any], split: Split) -> Callable[[Config], Model]:
    """Make the cache of a model with layers of several types."""

    def made(config: Config) -> Model:
        of = views(config, *VIEWS)
        layers = split(of)
        model = layered_config(tuple(map(tuple, layers)))
        at = [i for i, layer in enumerate(layers) for _ in layer]
        return Model(make(model), model.per_layer_config, of, at)

    return made


def updated(model: Model, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Do what the layer of a model does with its cache. One that folds tokens has no rows to attend to."""
    name, sizes = model.of[layer]
    if name == "state":
        return folded(model.own, model.at[layer], keys, values)
    if name == "conv":
        return convolved(model.own, model.at[layer], sizes[0], keys, values)
    found: tuple[Any, Any] = model.own.update(keys, values, model.at[layer])
    return found


def counted(model: Model) -> int | None:
    """The length of the first layer with rows to attend to; a cache of others counts none."""
    if all(name in (*FOLDS, "cross") for name, _ in model.of):
        return None
    return int(model.cache.get_seq_length())


def states(model: Model) -> dict[int, Any]:
    """Copies of the states of the layers that have one: a model folds the cache's own, and hands none out."""
    folding = [i for i, (name, _) in enumerate(model.of) if name == "state"]
    found = {i: model.own.get_recurrent_state(model.at[i]) for i in folding}
    return {i: None if state is None else state[0].clone() for i, state in found.items()}


def layer_mask(model: Model, layer: int, n: int) -> Any:
    """Make the mask of a layer for n queries, before the updates."""
    name, sizes = model.of[layer]
    if name == "state":
        return torch.zeros(n, 0, dtype=torch.bool)
    if name == "conv":
        return torch.ones(n, sizes[0] - 1 + n, dtype=torch.bool).triu().tril(sizes[0] - 1)
    found = VIEWS[name].mask(
        config=model.configs[model.at[layer]],
        inputs_embeds=torch.empty(1, n, 1),
        attention_mask=None,
        layer_idx=model.at[layer],
        **{PAST: model.cache},
    )
    return or_kernels(found, model.cache, model.at[layer], n)


def put_back(model: Model, saved: Any) -> None:
    """Take a copy of a saved cache, as one does for each continuation of a prompt."""
    vars(model.cache).update(vars(deepcopy(saved)))


def layers_adapter(name: str, made: Any = None, split: Any = apart, **given: Any) -> UpdateAdapter:
    """Make the adapter of a class of caches of several layers. It has none for a layer that shares rows."""
    usual: dict[str, Any] = {
        "cache": LayeredCache,
        "make": layered(made, split),
        "update": updated,
        "length": counted,
        "states": states,
        "mask": layer_mask,
        "reset": lambda model: model.cache.reset(),
        "state": lambda model: deepcopy(model.cache),
        "set_state": put_back,
        "also": (*VIEWS, "unlike", "zero", "scribble"),
    }
    return torch_adapter(f"transformers-{name}", "transformers", kind="layers", **usual | given)


def recording(cache: Any) -> Any:
    """A cache that keeps all rows until it is cropped, as assisted generation has it."""
    cache.activate_past_recording()
    return cache


def record(model: Model) -> None:
    """Have all layers keep what they need to be cropped, as assisted generation does before its first draft."""
    model.cache.activate_past_recording()


def commit(model: Model, n: int) -> None:
    """Crop the drafts that were not accepted, or none. Then end the recording, for which there is no call."""
    model.cache.crop(-n)
    for layer in model.cache.layers:
        if hasattr(layer, "record_past"):
            layer.record_past = False


def dynamic(config: Any) -> Any:
    """A `DynamicCache` with the layers of a config."""
    return transformers.DynamicCache(config=config)


def static(config: Any) -> Any:
    """A `StaticCache` with the layers of a config."""
    return transformers.StaticCache(config=config, max_cache_len=ROWS)


LAYERS = {"layers.shape": "first append", "layers.range": "clamped at 0"}
WHOLE = {"layers.resumes": "whole"}
STATIC = {"layers.shape": "first append, for good", "layers.spare": 1, **WHOLE}
ANY = {"layers.spare": "any"}
FEW: dict[str, Any] = {"limits": {"rows": ROWS}}

layers = layers_adapter("layers", dynamic, dialect=LAYERS | WHOLE, **CROP)
layers_recording = layers_adapter("layers-recording", lambda c: recording(dynamic(c)), dialect=LAYERS | ANY, **CROP)
layers_drafts = layers_adapter(
    "layers-drafts",
    dynamic,
    cache=DraftedLayers,
    begin=record,
    commit=commit,
    also=("full", "window", "chunk", "conv", "unlike"),
    dialect=LAYERS | WHOLE | {"layers.ways": "one"},
    **CROP,
)
"""Drafts of assisted generation. A state of linear attention cannot be cropped, and what else is said of layers is
judged of `transformers-layers`."""
layers_static = layers_adapter("layers-static", static, dialect=STATIC, **FEW, **STATIC_CROP)
hybrid_static_recording = layers_adapter(
    "hybrid-static-recording", lambda c: recording(static(c)), paired, dialect=STATIC, **FEW, **STATIC_CROP
)
