"""Hugging Face transformers: caches that keep more of a token than keys and values.

Layers of sparse attention keep the keys of an indexer, and an encoder-decoder's cache those of an encoder. The
adapter of layers with an indexer hands values to it, as no model does, to see that it keeps what the layer keeps.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kvadapters.engines import transformers as one
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


def indexed(config: Config) -> one.Cache:
    """Make a `DynamicCache` of one layer with an indexer."""
    model = transformers.MistralConfig(num_hidden_layers=1, sliding_window=None)
    model.layer_types = [SPARSE]
    return one.Cache(transformers.DynamicCache(config=model), config)


def sparse(cache: one.Cache, keys: Any, values: Any) -> tuple[Any, Any]:
    """Hand keys to the layer, and values to its indexer as they are."""
    found, _ = cache.cache.update(keys, keys, 0)
    return found, cache.cache.layers[0].update_index(values)


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
sparse_dynamic = part("sparse", "growing", indexed, sparse, **FIRST, **one.CROP, **COPIED)
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
