"""The same implementations, each wrong in one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.masks import Causal, Window
from support.engines.foreign import attention


class TopLeft(attention.Cache):
    """The causal mask is aligned at the upper left."""

    def added(self, part: Any, n: int, rows: int) -> Any:
        return np.triu(np.full((n, rows), -np.inf), 1) if isinstance(part, Causal) else super().added(part, n, rows)


class WiderWindow(attention.Cache):
    """A window is one row too wide."""

    def added(self, part: Any, n: int, rows: int) -> Any:
        wider = Window(part.size + 1) if isinstance(part, Window) else part
        return super().added(wider, n, rows)


class ScaledByValues(attention.Cache):
    """Products are divided by the root of v_dim."""

    def scale(self, dim: int, given: float | None) -> Any:
        return super().scale(self.values.shape[3], given)


class Float64TopLeft(attention.Float64):
    CACHE = TopLeft


class Float64WiderWindow(attention.Float64):
    CACHE = WiderWindow


class Float32ScaledByValues(attention.Float32):
    CACHE = ScaledByValues


class Float32TopLeft(attention.Float32):
    CACHE = TopLeft


WRONG = {
    "wrong:Float64TopLeft": "ATTN-4",
    "wrong:Float64WiderWindow": "ATTN-5",
    "wrong:Float32ScaledByValues": "ATTN-3",
    "wrong:Float32TopLeft": "ATTN-4",
    "wrong_torch:IsCausal": "ATTN-4",
}
"""Each with the clause that it breaks."""
