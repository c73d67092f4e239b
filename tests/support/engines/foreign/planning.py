"""MEM over a growing cache that doubles its room, and counts bytes in Python's whole numbers.

Written from the text of the chapters alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Lengths
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign.demands import want, want_rows, want_sizes

LARGEST = 2**64 - 1


class Doubling:
    """A growing cache, its room twice as large whenever it is too small."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "step")
        self.config, self.offset, self.room = config, 0, 0
        self.sides = self.buffers(0)

    def buffers(self, rows: int) -> list[Any]:
        """Room for keys and values."""
        return [np.zeros(self.config.shape(what, rows), DTYPES[self.config.dtype]) for what in "kv"]

    def enough(self, n: int) -> int:
        """The room after an append."""
        room = self.room
        while room < self.offset + n:
            room = max(1, 2 * room)
        return room

    def append(self, keys: Any, values: Any) -> None:
        """Write behind what there is."""
        n = keys.shape[2]
        if n == 0:
            return
        want_rows(self.config, keys, values, self.config.batch)
        if self.enough(n) > self.room:
            self.room = self.enough(n)
            for new, old in zip(fresh := self.buffers(self.room), self.sides, strict=True):
                new[:, :, : self.offset] = old[:, :, : self.offset]
            self.sides = fresh
        for side, rows in zip(self.sides, (keys, values), strict=True):
            side[:, :, self.offset : self.offset + n] = rows
        self.offset += n

    def lengths(self) -> Lengths:
        """How many rows there are, and may be."""
        return Lengths(self.offset, self.offset, None, self.room)

    def can_rewind(self, to: int) -> bool:
        """Whether there is such an offset."""
        return 0 <= to <= self.offset

    def rewind(self, to: int) -> None:
        """Lower the offset."""
        want(self.can_rewind(to), f"rewind to {to}")
        self.offset = to

    def free(self) -> None:
        """Give the room back."""
        self.offset = self.room = 0
        self.sides = self.buffers(0)

    def held(self) -> int:
        """Bytes of its room."""
        return sum(int(side.nbytes) for side in self.sides)

    def plan(self, n: int) -> tuple[int, int]:
        """Bytes after an append, and while rows move from the old room to the new."""
        config, size = self.config, DTYPES[self.config.dtype].itemsize
        after = self.enough(n) * config.batch * config.kv_heads * (config.k_dim + config.v_dim) * size
        return after, after + (self.held() if self.enough(n) > self.room else 0)


class Counting:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        able = ["rewind", "ask", "free", "offset", "batch", "zero", "step", "bits"]
        return {"name": "doubling", "chapters": {"growing": {"level": "visible", "with": able}, "mem": "visible"}}

    def open(self, kind: str, config: Any) -> Doubling:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return Doubling(config)

    def fit(self, kind: str, config: Any, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        """How many sequences of a store fit."""
        limit = 32 if most is None else most
        want(kind == "store" and limit >= 1, f"{kind}, at most {limit}")
        width = config.kv_heads * (config.k_dim + config.v_dim) * DTYPES[config.dtype].itemsize
        one = min(config.layers * config.max_len * width, LARGEST)
        left = max(0, free - (3_500_000_000 if reserve is None else reserve))
        fits = left // one if one else limit
        return max(1, min(fits, limit)), fits >= 1
