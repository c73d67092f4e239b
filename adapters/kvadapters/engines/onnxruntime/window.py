"""ONNX Runtime on a CPU: GroupQueryAttention with buffers of a window, out of which it evicts rows by itself.

Its caller says how many tokens there are, and drops the newest by saying fewer; the operator's text tells when that
is exact. The buffers have no room beyond the window, which is what ONNX Runtime takes on a GPU too. What queries of
an append attend to is not claimed, nor are masks, because the operator shows neither. Appends of no rows, batches
and who owns arrays are not claimed either, as in `kvadapters.engines.onnxruntime.caches`.
"""

from __future__ import annotations

import numpy as np

from kvadapters.engines.limits import one_of, one_width
from kvadapters.engines.onnxruntime.caches import FLOATS, NAMES, SAID, flat, grouped_query
from kvadapters.update import from_update
from kvspec.geometry import DTYPES, Array, Config


class Cache:
    """The buffers, and how many tokens there were."""

    def __init__(self, config: Config) -> None:
        self.window, width = config.window or 0, one_width(config, 8)
        self.session = grouped_query(one_of(config, FLOATS), config.kv_heads, self.window, evicts=True)
        shape = (config.batch, config.kv_heads, self.window, width)
        self.buffers = [np.zeros(shape, DTYPES[config.dtype]) for _ in "kv"]
        self.tokens = 0

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Attend with queries of zeros, and keep the buffers."""
        rows = map(flat, (np.zeros_like(keys), keys, values))
        total = self.tokens + keys.shape[2]
        counts = [np.full(keys.shape[0], total - 1, np.int32), np.array([total], np.int32)]
        found = self.session.run(None, dict(zip(NAMES, (*rows, *self.buffers, *counts), strict=True)))
        self.buffers, self.tokens = found[1:], total
        return found[1], found[2]

    def resident(self, tokens: int) -> int:
        """How many rows the buffers hold of so many tokens, as the operator's text says."""
        return min(tokens, self.window)

    def view(self) -> tuple[Array, Array] | None:
        """The rows of the buffers that the next query sees: they hold the newest, oldest first."""
        stop = self.resident(self.tokens)
        first = max(0, stop - self.window + 1)
        return (self.buffers[0][:, :, first:stop], self.buffers[1][:, :, first:stop]) if first < stop else None

    def can_trim(self, n: int) -> bool:
        """Whether the rows of so many tokens less are still there, as the operator's text has it."""
        fewer = self.tokens - n
        return 0 <= fewer <= self.tokens and self.resident(fewer) == self.resident(self.tokens) - n

    def trim(self, n: int) -> None:
        """Say fewer tokens. Raises ValueError where that is not exact: nothing in the operator looks."""
        if not self.can_trim(n):
            raise ValueError(f"the rows of {n} tokens less are gone")
        self.tokens -= n


window = from_update(
    "onnxruntime-gqa-evicting",
    kind="ring",
    make=Cache,
    update=Cache.update,
    view=Cache.view,
    length=lambda cache: cache.tokens,
    trim=Cache.trim,
    can_trim=Cache.can_trim,
    retained=lambda cache: cache.resident(cache.tokens),
    also=(),
    without=("history", "ask"),
    said={**SAID, "limits": {"dims": {"equal": True, "multiple": 8}}, "by_adapter": ["offset"]},
)
