"""flax: the decode cache of `nnx.MultiHeadAttention`, one token at a time.

Its projections are replaced by functions that change nothing, so that rows go in as they are; what its attention
function is handed is what queries attend to. Not claimed: rewinding, because flax cannot rewind.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from kvadapters.engines.limits import one_width
from kvadapters.update import from_update
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Config

try:
    import jax.numpy as jnp
    from flax import nnx
except ImportError as e:
    raise CannotRun(f"flax cannot be imported ({e}); pip install 'kvconform[flax]'") from e


class Cache:
    """An attention with its cache. `handed` are the keys, the values and the mask that its attention function
    got."""

    def __init__(self, config: Config) -> None:
        heads, width, dtype = config.kv_heads, one_width(config), DTYPES[config.dtype]
        self.attention = nnx.MultiHeadAttention(
            heads, width, heads * width, decode=True, dtype=dtype, attention_fn=self.attend, rngs=nnx.Rngs(0)
        )
        for projection in ("query", "key", "value", "out"):
            setattr(self.attention, projection, nnx.data(lambda rows, **_: rows))
        self.attention.init_cache((config.batch, config.max_len, width), dtype)
        self.handed: tuple[Any, ...] = ()
        self.mask: Any = None

    def attend(self, query: Any, key: Any, value: Any, mask: Any, **_: Any) -> Any:
        """Keep what attention gets; nothing needs an answer."""
        self.handed, self.mask = (key, value), np.asarray(mask) != 0
        return query

    def update(self, keys: Any, values: Any) -> Any:
        """Decode one token: rows are `[B, 1, H, dim]` in flax."""
        rows = [jnp.asarray(a.swapaxes(1, 2)) for a in (keys, values)]
        self.attention(rows[0], *rows)
        return [np.asarray(a).swapaxes(1, 2) for a in self.handed]


bounded = from_update(
    "flax",
    kind="bounded",
    make=Cache,
    update=Cache.update,
    length=lambda cache: cache.attention.cache_index[...],
    mask=lambda cache, n: cache.mask,
    also=("batch", "scribble"),
    dialect={"mask.made": "after"},
    said={
        "version": version("flax"),
        "limits": {"append": 1, "dims": {"equal": True}},
        "details": {"jax": version("jax")},
    },
)
