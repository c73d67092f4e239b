"""torch's attention, called wrongly."""

from __future__ import annotations

from typing import Any

import torch

from kvspec.masks import Causal
from support.engines.foreign.torch_sdpa import SDPA, Cache


class UpperLeft(Cache):
    """Causal as `is_causal` of torch has it: aligned at the upper left."""

    def added(self, part: Any, n: int, rows: int) -> torch.Tensor:
        seen = torch.ones(n, rows, dtype=torch.bool).tril()
        plain = torch.zeros(n, rows).masked_fill(~seen, float("-inf"))
        return plain if isinstance(part, Causal) else super().added(part, n, rows)


class IsCausal(SDPA):
    CACHE = UpperLeft
