"""executorch: `KVCacheWithAttentionSink` of its Llama example, whose first rows stay beside a ring of the newest.

Its window leaves the sinks uncounted, and its rows keep their positions. Those by which `RopeWithAttentionSink`
turns keys are not the cache's. Positions are the caller's (`input_pos`). The cache returns its own buffers: what
their caller writes into them is in the cache. Not claimed: going back.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.limits import one_width
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    from executorch.examples.models.llama.source_transformation.attention_sink import KVCacheWithAttentionSink

    from kvadapters.engines.torch import DTYPES, adapter
except ImportError as e:
    raise CannotRun(f"executorch cannot be imported ({e}); pip install 'kvconform[executorch]'") from e


class Cache:
    """A cache, and the position of the first row that was written last."""

    def __init__(self, config: Config) -> None:
        sizes = {"window_size": config.window, "sink_size": config.sinks, "max_batch_size": config.batch}
        self.cache = KVCacheWithAttentionSink(
            config.kv_heads, one_width(config), True, None, dtype=DTYPES[config.dtype], **sizes
        )
        self.first = 0

    def update(self, keys: Any, values: Any, first: int) -> Any:
        """Write at these positions."""
        found = self.cache.update(torch.arange(first, first + keys.shape[2]), keys, values)
        self.first = first
        return found

    def mask(self, n: int) -> Any:
        """The mask that attention asks for after the update."""
        return self.cache.create_causal_mask_for_ring_buffer(self.first, n)


sink = adapter(
    "executorch-sink",
    "executorch",
    {"dims": {"equal": True}},
    kind="sink",
    make=Cache,
    update=Cache.update,
    mask=Cache.mask,
    also=("batch", "beside", "kept"),
    dialect={"sink.positions": "caller", "mask.made": "after"},
)
