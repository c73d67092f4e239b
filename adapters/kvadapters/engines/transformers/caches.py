"""Hugging Face transformers: `DynamicCache` and `StaticCache` of one layer, with the masks of `masking_utils`.

The masks are those for the attention "sdpa", the default: boolean, or none where that attention needs no mask or
makes a causal one. A dynamic cache is saved as what it iterates over, and made anew of that, as data-parallel
models do. `update` returns the tensors of the cache itself, and what their caller writes into them is in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache as cached
from inspect import signature
from typing import Any

from kvadapters.update import UpdateAdapter
from kvspec.errors import CannotRun
from kvspec.geometry import Config, same_geometry

try:
    import torch
    import transformers
    from transformers import masking_utils
    from transformers.cache_utils import StaticLayer

    from kvadapters.engines.torch import adapter as torch_adapter
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

PAST = "cache" if "cache" in signature(masking_utils.create_causal_mask).parameters else "past_key_values"
"""What functions that make masks call the cache: its name changed."""

ROWS = 768
"""The least length of static caches with a window. They keep no more rows than their length."""


@dataclass
class Cache:
    """A cache of one layer, and the config that it was made for."""

    cache: Any
    config: Config


@cached
def model_config(window: int | None) -> Any:
    """The config of a model of one layer, with a sliding window if there is one."""
    config = transformers.MistralConfig(num_hidden_layers=1, sliding_window=window)
    config._attn_implementation = "sdpa"
    return config


def dynamic(config: Config) -> Cache:
    """Make a `DynamicCache`; with a window its layer is a sliding one."""
    found = transformers.DynamicCache(config=model_config(config.window))
    return Cache(found, config)


def static(config: Config) -> Cache:
    """Make a `StaticCache`, as long as the bound if there is one."""
    length = max(ROWS, config.window or 0) if config.max_len is None else config.max_len
    found = transformers.StaticCache(config=model_config(config.window), max_cache_len=length)
    return Cache(found, config)


def mask(cache: Cache, n: int) -> Any:
    """Make the mask as a model does, before the update."""
    window = cache.config.window
    make = masking_utils.create_sliding_window_causal_mask if window else masking_utils.create_causal_mask
    found = make(
        config=model_config(window),
        inputs_embeds=torch.empty(cache.config.batch, n, 1),
        attention_mask=None,
        **{PAST: cache.cache},
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
        also=("batch", "zero", "scribble"),
        **functions,
    )


def gathered(cache: Cache, saved: tuple[Config, Any]) -> None:
    """Make a cache of what another iterated over. Raises ValueError for that of another model, of which no engine
    knows."""
    config, rows = saved
    if not same_geometry(config, cache.config):
        raise ValueError("this is the cache of another model")
    cache.cache = transformers.DynamicCache(rows)


def rows(cache: Cache) -> tuple[Any, Any]:
    """The rows that a cache iterates over, as data-parallel models hand them on."""
    ((keys, values, *_),) = tuple(cache.cache)
    return keys, values


def of_rows(cache: Cache, keys: Any, values: Any) -> None:
    """Make a cache of such rows."""
    cache.cache = transformers.DynamicCache([(keys, values)])


def record(cache: Cache) -> None:
    """Have layers with a window record their past, as assisted generation does before its first draft."""
    cache.cache.activate_past_recording()


def commit(cache: Cache, n: int) -> None:
    """Crop the drafts that were not accepted, or none: a crop cuts what was recorded. Then end the recording, for
    which there is no call, as `generate` does."""
    if cache.cache.get_seq_length():
        cache.cache.crop(-n)
    for layer in cache.cache.layers:
        if hasattr(layer, "record_past"):
            layer.record_past = False


ROUNDS: dict[str, Any] = {"begin": record, "commit": commit}
CROP: dict[str, Any] = {"trim": lambda cache, n: cache.cache.crop(-n)}
"""`crop` removes rows if it gets their number as a negative number."""
STATIC_CROP = CROP if hasattr(StaticLayer, "crop") else {}
"""Static caches can remove rows from 5.24 on."""
HANDED_ON: dict[str, Any] = {"pack": rows, "unpack": of_rows}
GATHERED: dict[str, Any] = {"state": lambda cache: (cache.config, tuple(cache.cache)), "set_state": gathered}
"""What a cache iterates over are its keys, its values and the size of its window."""
CROPPED = {"growing.shape": "first append", "growing.range": "clamped at 0"}
"""The caches take the geometry of the first rows, and crop all rows if asked for more than there are."""
SLIDES = {
    "ring.shape": "first append",
    "ring.range": "clamped at 0",
    "ring.rewind": "below",
    "ring.keeps": "window - 1",
}
"""A full sliding cache has dropped its oldest row, and cannot be cropped."""

growing = adapter("dynamic", "growing", dynamic, dialect=CROPPED, **CROP, **GATHERED, **HANDED_ON, **ROUNDS)
sliding = adapter("sliding", "ring", dynamic, dialect=SLIDES, **CROP, **GATHERED, **ROUNDS)
bounded = adapter("static", "bounded", static, dialect={"bounded.shape": "first append, for good"}, **STATIC_CROP)
static_sliding = adapter(
    "static-sliding",
    "ring",
    static,
    dialect={"ring.shape": "first append, for good", "ring.rewind": 0},
    **STATIC_CROP,
)
