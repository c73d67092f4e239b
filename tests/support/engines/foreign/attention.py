"""ATTN as a textbook has it, in numpy: softmax(q k + mask) v over a growing cache that joins arrays.

`Float64` and `Float32` compute in those numbers. What weighs nothing is multiplied by 0, a query that sees nothing
gets NaN, and arguments are not checked: the claim leaves out `finite`, `sees nothing` and `checks`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from kvspec.contract import Lengths
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from kvspec.masks import Causal, Explicit


class Cache:
    """Keys and values `[B, heads, rows, dim]`."""

    def __init__(self, numbers: Any, config: Any) -> None:
        if min(config.batch, config.kv_heads, config.k_dim, config.v_dim, config.step) < 1:
            raise ValueError(f"a size below 1: {config}")
        self.numbers = numbers
        self.keys, self.values = (np.zeros(config.shape(what, 0), DTYPES[config.dtype]) for what in "kv")

    def append(self, keys: Any, values: Any) -> None:
        """Join new rows."""
        if keys.shape[2] != values.shape[2] or {keys.dtype, values.dtype} != {self.keys.dtype}:
            raise ValueError("keys and values do not match")
        self.keys, self.values = np.concatenate([self.keys, keys], 2), np.concatenate([self.values, values], 2)

    def lengths(self) -> Lengths:
        """How many rows there are."""
        return Lengths(self.keys.shape[2])

    def attend(self, queries: Any, keys: Any, values: Any, how: Any, out: Any = None, of: Any = None) -> Any:
        """Append, then softmax(q k scale + mask) v; a sink is a score more, whose value is zero."""
        self.append(keys, values)
        group = queries.shape[1] // self.keys.shape[1]
        q, k, v = (a.astype(self.numbers) for a in (queries, self.keys, self.values))
        scores = q @ k.repeat(group, 1).swapaxes(2, 3) * self.scale(q.shape[3], how.scale)
        if how.softcap:
            scores = how.softcap * self.tanh(scores / how.softcap)
        scores = scores + sum(self.added(part, q.shape[2], k.shape[2]) for part in how.through)
        v = v.repeat(group, 1)
        if how.sinks is not None:
            scores = np.concatenate([scores, self.column(how.sinks, scores.shape)], 3)
            v = np.pad(v, ((0, 0), (0, 0), (0, 1), (0, 0)))
        ends = 0, *how.parts, v.shape[2]
        parts = [self.part(scores[..., a:b], v[:, :, a:b]) for a, b in pairwise(ends) if b > a]
        return self.joined(parts).astype(np.float32)

    def part(self, scores: Any, values: Any) -> tuple[Any, Any]:
        """The output of some rows, and the logarithm of the sum of their weights."""
        most = np.maximum(scores.max(3, keepdims=True), self.numbers(-1e30))
        weights = np.exp(scores - most)
        total = weights.sum(3, keepdims=True)
        return weights @ values / np.where(total, total, 1), most + np.log(np.where(total, total, 1))

    def joined(self, parts: Any) -> Any:
        """Outputs, each by its logarithm."""
        if len(parts) == 1:
            return parts[0][0]
        logs = np.stack([log for _, log in parts])
        weights = np.exp(logs - logs.max(0))
        return sum(w * output for w, (output, _) in zip(weights, parts, strict=True)) / weights.sum(0)

    def column(self, sinks: Any, shape: Any) -> Any:
        """The sink of each head as a column of scores."""
        return np.broadcast_to(np.array(sinks, self.numbers)[:, None, None], (*shape[:3], 1))

    def tanh(self, x: Any) -> Any:
        """The tanh of a softcap."""
        return np.tanh(x)

    def scale(self, dim: int, given: float | None) -> Any:
        """What products are multiplied by."""
        return self.numbers(1 / math.sqrt(dim) if given is None else given)

    def added(self, part: Any, n: int, rows: int) -> Any:
        """What a part of a mask adds to the scores of n queries, `[1 or B, 1 or heads, n, rows or 1]`."""
        query, column = np.arange(rows - n, rows)[:, None], np.arange(rows)
        if isinstance(part, Explicit) and part.array.dtype != bool:
            return part.array.astype(self.numbers)
        if isinstance(part, Explicit):
            seen = part.array
        else:
            seen = column <= query if isinstance(part, Causal) else column > query - part.size
        return np.where(seen, 0, -np.inf).astype(self.numbers)


class Float64:
    """The adapter, computing in float64."""

    NUMBERS: Any = np.float64
    CACHE = Cache

    def describe(self) -> dict[str, Any]:
        """What it claims: `history` and all that nobody needs to attend is left out."""
        return {
            "name": f"textbook-{self.NUMBERS.__name__}",
            "chapters": {
                "growing": {"level": "visible", "with": ["offset", "batch", "step"]},
                "attention": {"level": "visible", "with": ["attend", "scale", "softcap", "learned sinks", "parts"]},
            },
        }

    def open(self, kind: str, config: Any) -> Cache:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return self.CACHE(self.NUMBERS, config)


class Float32(Float64):
    """The adapter, computing in float32."""

    NUMBERS = np.float32


class Approximate(Cache):
    """A cache whose tanh has 11 digits and no more, as that of a GPU."""

    DIGITS = 11

    def tanh(self, x: Any) -> Any:
        """The tanh, its last digits rounded away."""
        digits, power = np.frexp(super().tanh(x))
        return np.ldexp(np.rint(digits * 2**self.DIGITS) / 2**self.DIGITS, power).astype(self.numbers)


class HardwareTanh(Float32):
    """The adapter, with that tanh, which it declares."""

    CACHE = Approximate
    TANH = "hardware"

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        told = super().describe()
        attention = {**told["chapters"]["attention"], "tanh": self.TANH}
        return {**told, "name": "hardware-tanh", "chapters": {**told["chapters"], "attention": attention}}
