"""mlx-lm: the caches of `mlx_lm.models.cache`, each by the calls that mlx-lm's own models and server make.

Arrays go in and out as mlx has them, so that the harness overwrites the very arrays that a model would hold. One
cache is saved in a file of `save_prompt_cache`. Not claimed: snapshots as the spec cuts them (a state is taken
whole), and `free` (one makes a new cache). Lists of caches: see `layers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kvadapters import scratch
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
    with TemporaryDirectory(prefix=scratch.prefix()) as folder:
        file = Path(folder, "cache.safetensors")
        caches.save_prompt_cache(str(file), [cache])
        return file.read_bytes()


def loaded(fresh: Any, file: bytes) -> Any:
    """The cache that `load_prompt_cache` makes of a file. It grows by the step that was set."""
    with TemporaryDirectory(prefix=scratch.prefix()) as folder:
        path = Path(folder, "cache.safetensors")
        path.write_bytes(file)
        (cache,) = caches.load_prompt_cache(str(path))
        mx.eval(cache.state)
    cache.step = fresh.step
    return cache


def rows(cache: Any) -> tuple[Any, Any]:
    """The rows of a cache's state, which has room behind them."""
    keys, values, n = cache.state
    return keys[..., :n, :], values[..., :n, :]


def of_rows(cache: Any, keys: Any, values: Any) -> None:
    """Set the state of a cache."""
    cache.state = keys, values, keys.shape[2]


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

ROUNDS: dict[str, Any] = {"commit": trim}

KERNEL = {"mask.owner": "kernel"}
"""Their masks are words that the attention kernel understands."""
ROTATES = {"ring.rewind": "below", "ring.keeps": "window - 1"}
"""A full one writes over its oldest row, and cannot be trimmed."""

BYTES: dict[str, Any] = {"held": lambda cache: cache.nbytes}
HANDED_ON: dict[str, Any] = {"pack": rows, "unpack": of_rows}

growing = adapter(
    "growing", "growing", lambda config: caches.KVCache(), KERNEL, **LENGTH, **MASK, **ROUNDS, **BYTES, **HANDED_ON
)
"""Rounds as in `speculative_generate_step`: drafts are updates, and those that were not accepted are trimmed."""
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
