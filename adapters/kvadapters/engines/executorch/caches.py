"""executorch: `KVCache` and `RingKVCache` of its Llama example, updated with dynamic shapes.

Positions are the caller's (`input_pos`). The caches return their own buffers, and what their caller writes into
them is in the cache. Not claimed: going back in a ring.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.limits import one_width
from kvadapters.update import UpdateAdapter
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    from executorch.examples.models.llama import attention

    from kvadapters.engines.torch import DTYPES
    from kvadapters.engines.torch import adapter as torch_adapter
except ImportError as e:
    raise CannotRun(f"executorch cannot be imported ({e}); pip install 'kvconform[executorch]'") from e


class Cache:
    """A cache, and the position of the first row that was written last."""

    def __init__(self, made: Any, rows: int, config: Config) -> None:
        self.cache = made(config.batch, rows, config.kv_heads, one_width(config), True, DTYPES[config.dtype])
        self.first = 0

    def update(self, keys: Any, values: Any, first: int) -> Any:
        """Write at these positions."""
        found = self.cache.update(torch.arange(first, first + keys.shape[2]), keys, values)
        self.first = first
        return found


class Bounded(Cache):
    """`KVCache`. The mask is the rows of its attention's triangular mask for these positions."""

    def __init__(self, config: Config) -> None:
        super().__init__(attention.KVCache, config.max_len or 0, config)

    def mask(self, n: int) -> Any:
        """The rows of these positions."""
        rows = self.cache.max_context_length
        return torch.ones(rows, rows, dtype=torch.bool).tril()[self.first : self.first + n]


class Ring(Cache):
    """`RingKVCache`. It knows the position of each slot, and makes the mask from it."""

    def __init__(self, config: Config) -> None:
        super().__init__(attention.RingKVCache, config.window or 0, config)

    def mask(self, n: int) -> Any:
        """The mask that attention asks for after the update."""
        return self.cache.create_causal_mask_for_ring_buffer(self.first, n)


def adapter(name: str, kind: str, cache: type[Bounded | Ring], *also: str, **dialect: str) -> UpdateAdapter:
    """Make the adapter of one class."""
    return torch_adapter(
        name,
        "executorch",
        {"dims": {"equal": True}},
        kind=kind,
        make=cache,
        update=cache.update,
        mask=cache.mask,
        also=("batch", *also),
        dialect={f"{kind}.positions": "caller", "mask.made": "after", **dialect},
    )


bounded = adapter("executorch", "bounded", Bounded, "rewind", "ask", "scribble")
ring = adapter("executorch-ring", "ring", Ring, **{"ring.chunk": "2 * window"})
