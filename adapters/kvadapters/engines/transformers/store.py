"""Hugging Face transformers: a `StaticCache` of several layers as a store, with a length for each layer.

A reset is the store's `zero`: it clears the rows too. Layers get their buffers with their first rows.
"""

from __future__ import annotations

from typing import Any

from kvspec.errors import CannotRun
from kvspec.geometry import Config, valid

try:
    import torch
    import transformers

    from kvadapters.arrays.torch import from_engine, to_engine
    from kvadapters.stores import StoreAdapter, StoreFunctions
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e


def static(config: Config) -> Any:
    """Make the cache of a model with so many layers."""
    if not valid(config):
        raise ValueError(f"no model of {config}")
    model = transformers.MistralConfig(num_hidden_layers=config.layers, sliding_window=None)
    return transformers.StaticCache(config=model, max_cache_len=config.max_len)


def buffers(cache: Any, layer: int) -> tuple[Any, Any] | None:
    """Those of a layer."""
    found = cache.layers[layer]
    return (found.keys, found.values) if found.is_initialized else None


store = StoreAdapter(
    "transformers-store",
    StoreFunctions(
        make=static,
        update=lambda cache, layer, keys, values: cache.update(keys, values, layer),
        length=lambda cache, layer: cache.get_seq_length(layer),
        buffers=buffers,
        to_engine=to_engine,
        from_engine=from_engine,
        zero=lambda cache: cache.reset(),
        trim=lambda cache, layer, n: cache.layers[layer].crop(-n),
    ),
    {"version": transformers.__version__, "details": {"torch": str(torch.__version__)}},
    ("scribble",),
)
