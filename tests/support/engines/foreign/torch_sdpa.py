"""ATTN by torch: `scaled_dot_product_attention` over a growing cache that joins tensors.

torch takes a mask or none; several are added up before. It has a scale, and no softcap. Queries are f32, so keys
and values, which are kept in their own dtype, become f32 as they are attended to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.masks import Causal, Explicit

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def tensor(array: Any) -> torch.Tensor:
    """A tensor of its own; numpy has no bf16 that torch knows."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


class Cache:
    """Keys and values `[B, heads, rows, dim]`."""

    def __init__(self, config: Any) -> None:
        if min(config.batch, config.kv_heads, config.k_dim, config.v_dim, config.step) < 1:
            raise ValueError(f"a size below 1: {config}")
        dtype = DTYPES[config.dtype]
        self.rows = Pair(*(torch.empty(config.shape(what, 0), dtype=dtype) for what in "kv"))

    def append(self, keys: Any, values: Any) -> None:
        """Join new rows."""
        new = Pair(tensor(keys), tensor(values))
        if new.keys.shape[2] != new.values.shape[2] or {a.dtype for a in new} != {self.rows.keys.dtype}:
            raise ValueError("keys and values do not match")
        self.rows = Pair(*(torch.cat(pair, dim=2) for pair in zip(self.rows, new, strict=True)))

    def lengths(self) -> Lengths:
        """How many rows there are."""
        return Lengths(self.rows.keys.shape[2])

    def attend(self, queries: Any, keys: Any, values: Any, how: Any, out: Any = None, of: Any = None) -> Any:
        """Append, then attend."""
        self.append(keys, values)
        n, rows = queries.shape[2], self.rows.keys.shape[2]
        mask = sum((self.added(part, n, rows) for part in how.through), torch.zeros(1, 1, n, rows))
        attended = torch.nn.functional.scaled_dot_product_attention(
            torch.from_numpy(queries), *(a.float() for a in self.rows), mask, scale=how.scale, enable_gqa=True
        )
        return attended.numpy()

    def added(self, part: Any, n: int, rows: int) -> torch.Tensor:
        """What a part of a mask adds to the scores of n queries."""
        if isinstance(part, Explicit) and part.array.dtype != bool:
            return torch.from_numpy(part.array.copy())
        query, column = torch.arange(rows - n, rows)[:, None], torch.arange(rows)
        if isinstance(part, Explicit):
            seen = torch.from_numpy(part.array.copy())
        else:
            seen = column <= query if isinstance(part, Causal) else column > query - part.size
        return torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))


class SDPA:
    """The adapter."""

    CACHE = Cache

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {
            "name": "torch-sdpa",
            "version": torch.__version__,
            "chapters": {
                "growing": {"level": "visible", "with": ["offset", "batch", "step"]},
                "attention": {"level": "visible", "with": ["attend", "scale"]},
            },
        }

    def open(self, kind: str, config: Any) -> Cache:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return self.CACHE(config)
