"""mlx-lm, and what began as it: the list of caches that a model's `make_cache` makes of its layers.

The arithmetic of a layer that folds tokens is the model's, and stands here. So does the mask of chunks, which
llama4 makes within its model. The library mlx-lm puts a list back as a copy, as its `LRUPromptCache` does for each
request that it has a prefix of. A layer that shares rows has no cache in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from kvadapters.engines.mlx.caches import SAID, stepping, trim
from kvadapters.layered import LayeredCache, views
from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import mlx.core as mx
    from mlx_lm.models import cache as caches
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


class Prompt(list[Any]):
    """The caches of a model's layers, and what the model knows of each: its view and sizes."""

    of: list[tuple[str, tuple[int, ...]]]


def of_views(module: Any) -> dict[str, Callable[..., Any]]:
    """The caches of a module that `make_cache` of models makes for their layers."""
    return {
        "full": module.KVCache,
        "window": module.RotatingKVCache,
        "sinks": lambda first, newest: module.RotatingKVCache(first + newest, keep=first),
        "chunk": module.ChunkedKVCache,
        "state": lambda: module.ArraysCache(1),
        "conv": lambda size: module.ArraysCache(2),
    }


def listed(config: Config, made: Mapping[str, Callable[..., Any]]) -> Prompt:
    """Make the list of caches of a model's layers."""
    of = views(config, *made)
    prompt = Prompt(stepping(made[name](*sizes), config) for name, sizes in of)
    prompt.of = of
    return prompt


def updated(each: Prompt, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Do what the layer of a model does with its cache. One that folds tokens has no rows to attend to."""
    name, sizes = each.of[layer]
    if name == "state":
        return folded(each[layer], keys, values)
    if name == "conv":
        return convolved(each[layer], sizes[0], keys, values)
    return tuple(each[layer].update_and_fetch(keys, values))


def folded(cache: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """Take the state out of the cache, fold the rows, and put it back."""
    k, v = keys.astype(mx.float32), values.astype(mx.float32)
    state = mx.zeros((*k.shape[:2], k.shape[3], v.shape[3])) if cache[0] is None else cache[0]
    for t in range(k.shape[2]):
        state = state / 2 + k[:, :, t, :, None] * v[:, :, t, None, :]
    cache[0] = state
    return keys[:, :, :0], values[:, :, :0]


def convolved(cache: Any, size: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Put rows behind those of the cache, zeros if it has none, and keep the newest but one of `size`."""
    none = [mx.zeros((*a.shape[:2], size - 1, a.shape[3]), a.dtype) for a in (keys, values)]
    rows = [
        mx.concatenate([old if cache[i] is None else cache[i], new], axis=2)
        for i, (old, new) in enumerate(zip(none, (keys, values), strict=True))
    ]
    for i, whole in enumerate(rows):
        cache[i] = whole[:, :, whole.shape[2] - size + 1 :]
    return rows[0], rows[1]


def counted(each: Prompt) -> int | None:
    """The offset of the first cache that has one: caches of states have none."""
    return next((cache.offset for cache in each if hasattr(cache, "offset")), None)


def put_back(each: list[Any], saved: list[Any]) -> None:
    """Take a copy of saved caches."""
    each[:] = deepcopy(saved)


def layer_mask(each: Prompt, layer: int, n: int) -> Any:
    """Make the mask of a layer, before the updates."""
    cache, (name, sizes) = each[layer], each.of[layer]
    if name == "state":
        return mx.zeros((n, 0), mx.bool_)
    if name == "conv":
        row, query = np.arange(sizes[0] - 1 + n), np.arange(n)[:, None]
        return mx.array((row >= query) & (row < query + sizes[0]))
    if name == "chunk":
        return chunk_mask(cache, n)
    return cache.make_mask(n, window_size=None, return_array=False)


def chunk_mask(cache: Any, n: int) -> Any:
    """What llama4 does with a chunked cache within its model: cut its front, then make a mask of what is left."""
    cache.maybe_trim_front()
    columns = np.arange(cache.start_position, cache.offset + n)
    queries = np.arange(cache.offset, cache.offset + n)[:, None]
    same = columns // cache.chunk_size == queries // cache.chunk_size
    return mx.array(same & (columns <= queries))


def _alone(state: Any) -> Any:
    """The state of the one sequence of a batch; none if there is none."""
    return None if state is None else state[0]


def adapter(name: str, module: Any, **functions: Any) -> UpdateAdapter:
    """Make the adapter of the lists of a module's caches; `functions` trim, save and put back a list.

    Rings refuse all trims once they are full, chunked caches none.
    """
    made = of_views(module)
    return from_update(
        name,
        kind="layers",
        make=lambda config: listed(config, made),
        update=updated,
        length=counted,
        states=lambda each: {i: _alone(each[i][0]) for i, (view, _) in enumerate(each.of) if view == "state"},
        mask=layer_mask,
        arrays="mlx",
        also=(*made, "unlike", "zero", "scribble"),
        dialect={
            "layers.shape": "first append",
            "layers.range": "clamped at 0",
            "layers.spare": "any",
            "layers.resumes": "whole",
        },
        cache=LayeredCache,
        **functions,
    )


layers = adapter("mlx-layers", caches, trim=trim, state=deepcopy, set_state=put_back, said=SAID)
