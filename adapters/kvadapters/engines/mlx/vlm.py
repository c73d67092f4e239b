"""mlx-vlm: the caches of `mlx_vlm.models.cache`, which began as those of mlx-lm and went their own way.

`clone_cache_entry` clones what is saved: with it the prefix cache keeps the cache of a prompt, and gives it to each
request that begins so. It keeps no batches; these are cloned by their `state`, `meta_state` and `from_state`. Not
claimed: snapshots as the spec cuts them (a state is taken whole), and `free` (one makes a new cache).
"""

from __future__ import annotations

from copy import deepcopy
from importlib.metadata import version
from typing import Any, ClassVar

from kvadapters.engines.mlx import caches as mlx
from kvadapters.engines.mlx import layers as mlx_layers
from kvadapters.engines.mlx import ragged as mlx_ragged
from kvadapters.engines.mlx.caches import KERNEL, LENGTH, LENGTHS, MASK, ROTATES, zeros
from kvadapters.update import UpdateAdapter
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    from mlx_vlm.apc_adapters import clone_cache_entry
    from mlx_vlm.models import cache as caches
except ImportError as e:
    raise CannotRun(f"mlx-vlm cannot be imported ({e}); pip install 'kvconform[mlxvlm]'") from e

SAID = {"version": version("mlx-vlm"), "details": {"mlx": version("mlx")}}


def trim(cache: Any, n: int) -> None:
    """Trim a cache that says that it can be trimmed."""
    if not cache.is_trimmable():
        raise ValueError("the cache cannot be trimmed")
    cache.trim(n)


def cloned(cache: Any) -> Any:
    """The clone that the prefix cache makes of a cache."""
    return clone_cache_entry(cache, min_capacity_tokens=None, eval_targets=[])


def put_back(fresh: Any, saved: Any) -> Any:
    """A clone of what was saved. It grows by the step that was set."""
    cache = cloned(saved)
    cache.step = fresh.step
    return cache


def list_trimmed(each: list[Any], n: int) -> None:
    """Trim all caches of a list, which each say that they can be trimmed."""
    if not all(cache.is_trimmable() for cache in each):
        raise ValueError("a cache of the list cannot be trimmed")
    for cache in each:
        cache.trim(n)


def list_put_back(fresh: list[Any], saved: list[Any]) -> None:
    """Clones of saved caches, in the place of those of a list."""
    fresh[:] = map(put_back, fresh, saved)


def state(cache: Any) -> Any:
    """A copy of the two parts of a cache's state."""
    return deepcopy(cache.state), cache.meta_state


def from_state(fresh: Any, saved: Any) -> Any:
    """The cache that its class makes of them. It grows by the step that was set."""
    cache = type(fresh).from_state(deepcopy(saved[0]), saved[1])
    cache.step = fresh.step
    return cache


def adapter(name: str, kind: str, cache: Any, dialect: dict[str, str] | None = None, **more: Any) -> UpdateAdapter:
    """Make the adapter of one class, as for those of mlx-lm."""
    own = {"trim": trim, "state": cloned, "set_state": put_back, "said": SAID, **more}
    return mlx.adapter(f"mlxvlm-{name}", kind, cache, dialect, **own)


def prefix(config: Config) -> Any:
    """A cache that is made for so many rows, and grows by so many beyond them."""
    return caches.StaticPrefixKVCache(max_size=config.step, step=config.step)


def buffered(config: Config) -> Any:
    """One with the room for rows that are taken back that speculation sets, at the least."""
    return caches.BufferedRotatingKVCache(config.window, buffer_size=config.step)


STATE: dict[str, Any] = {"state": state, "set_state": from_state}

growing = adapter("growing", "growing", lambda config: caches.KVCache(), KERNEL, **LENGTH, **MASK)
concatenate = adapter(
    "concatenate", "growing", lambda config: caches.ConcatenateKVCache(), KERNEL, **LENGTH, **MASK
)
simple = adapter(
    "simple", "growing", lambda config: caches.SimpleKVCache(), length=lambda cache: cache.cache_length, trim=None
)
"""It has no call that goes back."""
static_prefix = adapter("static-prefix", "growing", prefix, **LENGTH)
chunked = adapter("chunked", "growing", lambda config: caches.ChunkedKVCache(mlx.CHUNK), **LENGTH)
rotating = adapter(
    "rotating", "ring", lambda config: caches.RotatingKVCache(config.window), ROTATES, **LENGTH, **MASK
)
rotating_keep = adapter(
    "rotating-keep",
    "sink",
    lambda config: caches.RotatingKVCache(config.window, keep=config.sinks),
    {"sink.full": "refused"},
    also=("counted", "kept"),
    **LENGTH,
    **MASK,
)
batch = adapter("batch", "growing", lambda config: caches.BatchKVCache(zeros(config)), **LENGTHS, **MASK, **STATE)
batch_rotating = adapter(
    "batch-rotating",
    "ring",
    lambda config: caches.BatchRotatingKVCache(config.window, zeros(config)),
    ROTATES,
    **LENGTHS,
    **MASK,
    **STATE,
)
buffered_rotating = adapter(
    "buffered", "ring", buffered, {"ring.rewind": "since append", "ring.keeps": "any"}, **LENGTH, **MASK
)
"""Rows of the block before may be taken back, which speculation does."""


class RaggedBatch(mlx_ragged.RaggedBatch):
    """A batch cache of mlx-vlm on sequences of unequal lengths."""

    module: ClassVar[Any] = caches


class WindowedBatch(mlx_ragged.WindowedBatch):
    """A rotating one."""

    module: ClassVar[Any] = caches


ragged = mlx_ragged.BatchAdapter(
    "mlxvlm-ragged",
    adapter("growing", "growing", lambda config: caches.KVCache(), **LENGTH),
    adapter("rotating", "ring", lambda config: caches.RotatingKVCache(config.window), ROTATES, **LENGTH),
    RaggedBatch,
    WindowedBatch,
)

layers = mlx_layers.adapter(
    "mlxvlm-layers",
    caches,
    trim=list_trimmed,
    state=lambda each: [*map(cloned, each)],
    set_state=list_put_back,
    said=SAID,
)
