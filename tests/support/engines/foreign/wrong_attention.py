"""A textbook's attention, wrong in one thing each time."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.masks import Causal, Window
from support.engines.foreign import attention


def having(engine: Any, cache: type) -> Any:
    """The engine with these caches."""
    return type(cache.__name__, (engine,), {"CACHE": cache})


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


class SinkForgotten(attention.Cache):
    """The softmax is over the rows alone."""

    def column(self, sinks: Any, shape: Any) -> Any:
        return np.full((*shape[:3], 1), -np.inf)


class SinkOfKvHeads(attention.Cache):
    """Sinks go round as kv heads do, not query heads."""

    def column(self, sinks: Any, shape: Any) -> Any:
        turned = [sinks[h % self.keys.shape[1]] for h in range(len(sinks))]
        return super().column(turned, shape)


class BaseTwo(attention.Cache):
    """The logarithm of a part's sum is to base 2."""

    def part(self, scores: Any, values: Any) -> tuple[Any, Any]:
        output, log = super().part(scores, values)
        return output, log / np.log(self.numbers(2))


class EmptyPartsCount(attention.Cache):
    """A part of which a query sees nothing has 0 for its logarithm."""

    def part(self, scores: Any, values: Any) -> tuple[Any, Any]:
        output, log = super().part(scores, values)
        return output, np.where(log < -1e29, self.numbers(0), log)


class PartsAlike(attention.Cache):
    """All parts weigh alike."""

    def part(self, scores: Any, values: Any) -> tuple[Any, Any]:
        output, log = super().part(scores, values)
        return output, np.zeros_like(log)


Float32EmptyPartsCount = having(attention.Float32, EmptyPartsCount)
Float32PartsAlike = having(attention.Float32, PartsAlike)
Float32BaseTwo = having(attention.Float32, BaseTwo)
Float32SinkForgotten = having(attention.Float32, SinkForgotten)
Float32SinkOfKvHeads = having(attention.Float32, SinkOfKvHeads)
Float64TopLeft = having(attention.Float64, TopLeft)
Float64WiderWindow = having(attention.Float64, WiderWindow)
Float32ScaledByValues = having(attention.Float32, ScaledByValues)
Float32TopLeft = having(attention.Float32, TopLeft)


class HardwareTanhUndeclared(attention.HardwareTanh):
    """The tanh of a GPU is taken for one in f32."""

    TANH = "f32"


class FiveDigits(attention.Approximate):
    """A tanh has 5 digits."""

    DIGITS = 5


HardwareTanhCoarse = having(attention.HardwareTanh, FiveDigits)
