"""litgpt: `KVCache`, with and without its sliding window, and the masks that `GPT` and `CausalSelfAttention` make.

Positions are the caller's (`input_pos`). The cache returns its own buffers, and what their caller writes into
them is in the cache. Not claimed: going back and emptying with a
sliding window.
"""

from __future__ import annotations

from typing import Any

from kvadapters.update import UpdateAdapter
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    from litgpt import model

    from kvadapters.engines.torch import DTYPES
    from kvadapters.engines.torch import adapter as torch_adapter
except ImportError as e:
    raise CannotRun(f"litgpt cannot be imported ({e}); pip install 'kvconform[litgpt]'") from e

ROWS = 768
"""The number of positions that the masks of the sliding window have."""


class Cache:
    """The cache of one layer, and the position of the first row that was written last."""

    def __init__(self, config: Config) -> None:
        rows = config.window or config.max_len or 0
        self.cache = model.KVCache(
            config.shape("k", rows),
            config.shape("v", rows),
            dtype=DTYPES[config.dtype],
            is_sliding_window=config.window is not None,
            sliding_window_size=config.window,
        )
        self.masks = model.build_mask_cache(config.max_len or ROWS)
        self.first = 0

    def update(self, keys: Any, values: Any, first: int) -> tuple[Any, Any]:
        """Write at these positions, and give the part of the buffers that attention reads."""
        stop = first + keys.shape[2]
        found = self.cache(torch.arange(first, stop), keys, values)
        self.first = first
        return found[0][..., :stop, :], found[1][..., :stop, :]

    def mask(self, n: int) -> Any:
        """The rows of the mask for these positions, cut to the columns of the keys, as attention does."""
        stop = self.first + n
        rows = model.batched_index_select(self.masks, 2, torch.arange(self.first, stop))
        return rows[..., : min(stop, self.cache.max_cache_len)]


def adapter(
    name: str, kind: str, also: tuple[str, ...], limits: dict[str, int] | None = None, **dialect: str
) -> UpdateAdapter:
    """Make the adapter of one kind."""
    return torch_adapter(
        name,
        "litgpt",
        limits,
        kind=kind,
        make=Cache,
        update=Cache.update,
        mask=Cache.mask,
        reset=(lambda cache: cache.cache.reset_parameters()) if kind == "bounded" else None,
        also=("batch", "scribble", *also),
        dialect={f"{kind}.positions": "caller", "mask.made": "after", **dialect},
    )


bounded = adapter("litgpt", "bounded", ("rewind", "ask", "zero"))
sliding = adapter("litgpt-sliding", "ring", (), {"rows": ROWS}, **{"ring.chunk": "window"})
