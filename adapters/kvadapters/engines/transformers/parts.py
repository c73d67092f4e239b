"""Hugging Face transformers: caches that keep more of a token than keys and values.

Layers of sparse attention keep the keys of an indexer, and an encoder-decoder's cache those of an encoder. The
adapters of layers with an indexer hand values to it, as no model does, to see that it keeps what the layer keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from kvadapters.engines.transformers import caches as one
from kvadapters.update import UpdateAdapter
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    import transformers
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as minimax_m3

    from kvadapters.engines.torch import adapter
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

SPARSE = minimax_m3.MiniMaxM3VLSparseCacheLayer._layer_type
"""The type of layers with an indexer of MiniMax-M3, which registers itself when the model is imported."""

INDEXED = "indexed_attention"
"""The type of layers with an indexer of GLM and DeepSeek."""


def typed(layer: str) -> Any:
    """The config of a model of one layer of this type."""
    model = transformers.MistralConfig(num_hidden_layers=1, sliding_window=None)
    model.layer_types = [layer]
    return model


def indexed(layer: str) -> Callable[[Config], one.Cache]:
    """Make a `DynamicCache` of one layer with an indexer."""
    return lambda config: one.Cache(transformers.DynamicCache(config=typed(layer)), config)


def indexed_static(config: Config) -> one.Cache:
    """Make a `StaticCache` of one layer with an indexer."""
    return one.Cache(transformers.StaticCache(config=typed(INDEXED), max_cache_len=config.max_len), config)


def sparse(cache: one.Cache, keys: Any, values: Any) -> tuple[Any, Any]:
    """Hand keys to the layer, and values to its indexer as they are."""
    found, _ = cache.cache.update(keys, keys, 0)
    return found, cache.cache.layers[0].update_index(values)


def beside(cache: one.Cache, keys: Any, values: Any) -> tuple[Any, Any]:
    """Hand keys to the layer, and values to its indexer, which has one head: theirs side by side."""
    found, _ = cache.cache.update(keys, keys, 0)
    rows = cache.cache.layers[0].update_indexer(values.transpose(1, 2).flatten(2))
    return found, rows.unflatten(2, (values.shape[1], values.shape[3])).transpose(1, 2)


def encoded(config: Config) -> one.Cache:
    """Make an `EncoderDecoderCache`, with one row of an encoder."""
    own, cross = (one.dynamic(config).cache for _ in range(2))
    row = torch.zeros(config.batch, 1, 1, 1)
    cross.update(row, row, 0)
    return one.Cache(transformers.EncoderDecoderCache(own, cross), config)


def gathered(cache: one.Cache, rows: Any) -> None:
    """Make a cache of what another iterated over."""
    cache.cache = transformers.EncoderDecoderCache(rows)


def put_back(cache: one.Cache, saved: one.Cache) -> None:
    """Take a copy of a saved cache."""
    cache.cache = deepcopy(saved)


COPIED: dict[str, Any] = {"state": lambda cache: deepcopy(cache.cache), "set_state": put_back}


def part(name: str, kind: str, make: Any, update: Any, **given: Any) -> UpdateAdapter:
    """Make the adapter of a cache of one layer."""
    return adapter(
        f"transformers-{name}",
        "transformers",
        kind=kind,
        make=make,
        update=update,
        length=lambda cache: cache.cache.get_seq_length(),
        mask=one.mask,
        reset=lambda cache: cache.cache.reset(),
        also=("batch", "zero", "scribble"),
        **given,
    )


FIRST = {"dialect": one.CROPPED}
sparse_dynamic = part("sparse", "growing", indexed(SPARSE), sparse, **FIRST, **one.CROP, **COPIED)
indexed_dynamic = part("indexed", "growing", indexed(INDEXED), beside, **FIRST, **one.CROP, **COPIED)
indexed_bounded = part(
    "static-indexed",
    "bounded",
    indexed_static,
    beside,
    dialect={"bounded.shape": "first append, for good"},
    **one.STATIC_CROP,
)
encoder_decoder = part(
    "encoder-decoder",
    "growing",
    encoded,
    lambda cache, keys, values: cache.cache.self_attention_cache.update(keys, values, 0),
    state=lambda cache: tuple(cache.cache),
    set_state=gathered,
    **FIRST,
    **one.CROP,
)
