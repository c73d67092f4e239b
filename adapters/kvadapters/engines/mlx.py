"""mlx-lm: the caches of `mlx_lm.models.cache`, each by the calls that mlx-lm's own models and server make.

Arrays go in and out as mlx has them, so that the harness overwrites the very arrays that a model would hold. One
cache is saved in a file of `save_prompt_cache`; a list of them as a copy, as `LRUPromptCache` makes it. Not
claimed: snapshots as the spec cuts them (a state is taken whole), and `free` (one makes a new cache).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kvadapters.layered import LayeredCache, views
from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import mlx.core as mx
    from mlx_lm.models import cache as caches

    from kvadapters.arrays.mlx import from_engine as to_numpy
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


__all__ = ["LENGTH", "adapter", "to_numpy"]

SAID = {"version": version("mlx-lm"), "details": {"mlx": version("mlx")}}


def trim(cache: Any, n: int) -> None:
    """Trim as mlx-lm's generation does: it raises if the cache, or one of a list, cannot be trimmed."""
    each = cache if isinstance(cache, list) else [cache]
    if not caches.can_trim_prompt_cache(each):
        raise ValueError("the cache cannot be trimmed")
    caches.trim_prompt_cache(each, n)


def saved(cache: Any) -> bytes:
    """The file that `save_prompt_cache` makes of a cache."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "cache.safetensors")
        caches.save_prompt_cache(str(file), [cache])
        return file.read_bytes()


def loaded(fresh: Any, file: bytes) -> Any:
    """The cache that `load_prompt_cache` makes of a file. It grows by the step that was set."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "cache.safetensors")
        path.write_bytes(file)
        (cache,) = caches.load_prompt_cache(str(path))
        mx.eval(cache.state)
    cache.step = fresh.step
    return cache


def adapter(
    name: str,
    kind: str,
    cache: Any,
    dialect: Mapping[str, str] | None = None,
    also: tuple[str, ...] = (),
    **functions: Any,
) -> UpdateAdapter:
    """Make the adapter of one class; `cache` makes a cache of a config. `also` names abilities of its own.

    All take the geometry of the first rows, and trim all rows if asked for more than there are.
    """
    given = {"trim": trim, "state": saved, "set_state": loaded, "said": SAID, **functions}
    return from_update(
        name if name.startswith("mlx") else f"mlx-{name}",
        kind=kind,
        make=lambda config: stepping(cache(config), config),
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        arrays="mlx",
        also=("batch", "step", "zero", "scribble", *also),
        dialect={f"{kind}.shape": "first append", f"{kind}.range": "clamped at 0", **(dialect or {})},
        **given,
    )


def stepping(cache: Any, config: Config) -> Any:
    """Set the rows by which it grows, 256 by default: an attribute of every class."""
    cache.step = config.step
    return cache


def zeros(config: Config) -> list[int]:
    """The left padding of a batch of sequences of one length."""
    return [0] * config.batch


LENGTH: dict[str, Any] = {"length": lambda cache: cache.offset}
LENGTHS: dict[str, Any] = {"length": lambda cache: cache.offset[0].item()}
"""The batch caches count for each sequence; here all are of one length."""
MASK: dict[str, Any] = {"mask": lambda cache, n: cache.make_mask(n, window_size=None, return_array=False)}

KERNEL = {"mask.owner": "kernel"}
"""Their masks are words that the attention kernel understands."""
ROTATES = {"ring.rewind": "below", "ring.keeps": "window - 1"}
"""A full one writes over its oldest row, and cannot be trimmed."""

growing = adapter("growing", "growing", lambda config: caches.KVCache(), KERNEL, **LENGTH, **MASK)
concatenate = adapter(
    "concatenate", "growing", lambda config: caches.ConcatenateKVCache(), KERNEL, **LENGTH, **MASK
)
CHUNK = 8192
"""The chunk of llama4. It has no effect here."""

chunked = adapter("chunked", "growing", lambda config: caches.ChunkedKVCache(CHUNK), **LENGTH)
"""Without `maybe_trim_front`: llama4 calls it at chunk boundaries, and chunks are no sliding window."""
rotating = adapter(
    "rotating", "ring", lambda config: caches.RotatingKVCache(config.window), ROTATES, **LENGTH, **MASK
)
rotating_keep = adapter(
    "rotating-keep",
    "sink",
    lambda config: caches.RotatingKVCache(config.window, keep=config.sinks),
    also=("counted", "kept"),
    dialect={"sink.full": "refused"},
    **LENGTH,
    **MASK,
)
"""The window counts the rows that are kept, and rows keep their positions."""
batch = adapter("batch", "growing", lambda config: caches.BatchKVCache(zeros(config)), **LENGTHS, **MASK)
batch_rotating = adapter(
    "batch-rotating",
    "ring",
    lambda config: caches.BatchRotatingKVCache(config.window, zeros(config)),
    ROTATES,
    **LENGTHS,
    **MASK,
)


VIEWS: dict[str, Callable[..., Any]] = {
    "full": caches.KVCache,
    "window": caches.RotatingKVCache,
    "sinks": lambda first, newest: caches.RotatingKVCache(first + newest, keep=first),
    "chunk": caches.ChunkedKVCache,
    "state": lambda: caches.ArraysCache(1),
    "conv": lambda size: caches.ArraysCache(2),
}
"""The caches that `make_cache` of models makes for their layers."""


class Prompt(list[Any]):
    """The caches of a model's layers, and what the model knows of each: its view and sizes."""

    of: list[tuple[str, tuple[int, ...]]]


def listed(config: Config) -> Prompt:
    """Make the list of caches of a model's layers. A layer that shares rows has none in it."""
    of = views(config, *VIEWS)
    made = Prompt(stepping(VIEWS[name](*sizes), config) for name, sizes in of)
    made.of = of
    return made


def updated(each: Prompt, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Do what the layer of a model does with its cache. One that folds tokens has no rows to attend to."""
    name, sizes = each.of[layer]
    if name == "state":
        return folded(each[layer], keys, values)
    if name == "conv":
        return convolved(each[layer], sizes[0], keys, values)
    return tuple(each[layer].update_and_fetch(keys, values))


def folded(cache: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """Take the state out of the cache, fold the rows, and put it back: the arithmetic is the model's."""
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
    """Take a copy of saved caches, as `LRUPromptCache` does for each request that it has a prefix of."""
    each[:] = deepcopy(saved)


def layer_mask(each: Prompt, layer: int, n: int) -> Any:
    """Make the mask of a layer, before the updates."""
    cache, (name, sizes) = each[layer], each.of[layer]
    if name == "state":
        return mx.zeros((n, 0), mx.bool_)
    if name == "conv":
        row, query = np.arange(sizes[0] - 1 + n), np.arange(n)[:, None]
        return mx.array((row >= query) & (row < query + sizes[0]))
    if isinstance(cache, caches.ChunkedKVCache):
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


layers = from_update(
    "mlx-layers",
    kind="layers",
    make=listed,
    update=updated,
    length=counted,
    states=lambda each: {i: _alone(each[i][0]) for i, (name, _) in enumerate(each.of) if name == "state"},
    trim=trim,
    mask=layer_mask,
    state=deepcopy,
    set_state=put_back,
    arrays="mlx",
    also=(*VIEWS, "unlike", "zero", "scribble"),
    dialect={
        "layers.shape": "first append",
        "layers.range": "clamped at 0",
        "layers.spare": "any",
        "layers.resumes": "whole",
    },
    said=SAID,
    cache=LayeredCache,
)
"""Rings refuse all trims once they are full, chunked caches none."""
