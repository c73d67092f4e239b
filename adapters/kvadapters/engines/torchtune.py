"""torchtune: `KVCache`, with the masks that its generation makes.

The cache returns its own buffers, and what its caller writes into them is in the cache. Not claimed: rewinding,
because torchtune cannot rewind. The caches of all layers of a model are a store.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.limits import one_width
from kvspec.errors import CannotRun
from kvspec.geometry import Config, valid

try:
    import torch
    import torchtune
    from torchtune.generation import get_causal_mask_from_padding_mask
    from torchtune.modules import KVCache

    from kvadapters.arrays.torch import from_engine, to_engine
    from kvadapters.engines.torch import DTYPES, adapter
    from kvadapters.stores import StoreAdapter, StoreFunctions
except ImportError as e:
    raise CannotRun(f"torchtune cannot be imported ({e}); pip install 'kvconform[torchtune]'") from e


def make(config: Config) -> Any:
    """Make a cache."""
    return KVCache(config.batch, config.max_len, config.kv_heads, one_width(config), DTYPES[config.dtype])


def mask(cache: Any, n: int) -> Any:
    """The rows of these positions, of the mask for a prompt without padding."""
    stop, columns = cache.size + n, cache.k_cache.shape[2]
    mask = get_causal_mask_from_padding_mask(torch.ones(1, stop, dtype=torch.bool), columns)
    return mask[:, cache.size : stop]


bounded = adapter(
    "torchtune",
    "torchtune",
    {"dims": {"equal": True}},
    kind="bounded",
    make=make,
    update=lambda cache, keys, values: cache.update(keys, values),
    length=lambda cache: cache.size,
    mask=mask,
    reset=lambda cache: cache.reset(),
    also=("batch", "scribble", "zero"),
)


def layers(config: Config) -> list[Any]:
    """Make a cache for each layer, as a model's `setup_caches` does."""
    if not valid(config):
        raise ValueError(f"no model of {config}")
    return [make(config) for _ in range(config.layers or 0)]


def zero(caches: list[Any]) -> None:
    """Reset all caches, as a model's `reset_caches` does: rows are cleared too."""
    for cache in caches:
        cache.reset()


store = StoreAdapter(
    "torchtune-store",
    StoreFunctions(
        make=layers,
        update=lambda caches, layer, keys, values: caches[layer].update(keys, values),
        length=lambda caches, layer: caches[layer].size,
        buffers=lambda caches, layer: (caches[layer].k_cache, caches[layer].v_cache),
        to_engine=to_engine,
        from_engine=from_engine,
        zero=zero,
    ),
    {"version": torchtune.__version__, "limits": {"dims": {"equal": True}}},
    ("scribble",),
)
