"""Engines with known deviations, planted in the engine of `update_engines`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvadapters.update import from_update
from kvref.caches.growing import Growing
from kvspec.geometry import DTYPES
from support.engines.update_engines import WindowCache, adapter


class Forgets(WindowCache):
    """Forgets to count a trim of its only row, as is known."""

    def trim(self, n: int) -> None:
        super().trim(n)
        self.offset += n == 1 and not self.offset


class ForgetsAndShows(Forgets):
    """The same, and after any trim its masks show the oldest row, which nobody knows of."""

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self.trimmed = False

    def trim(self, n: int) -> None:
        super().trim(n)
        self.trimmed = self.trimmed or n > 1

    def make_mask(self, n: int) -> Any:
        mask = super().make_mask(n)
        mask[:, :1] |= self.trimmed
        return mask


class ForgetsTwo(Forgets):
    """The same, and forgets to count a trim of its only two rows, which nobody knows of."""

    def trim(self, n: int) -> None:
        super().trim(n)
        self.offset += 2 * (n == 2 and not self.offset)


forgets, forgets_and_shows, forgets_two = adapter(Forgets), adapter(ForgetsAndShows), adapter(ForgetsTwo)


class Lengthens(WindowCache):
    """Trims less than nothing: it then has a row more, which nobody gave it."""

    def trim(self, n: int) -> None:
        if n < 0:
            self.offset -= n
            self.rows = [np.concatenate([a, a[:, :, :1]], axis=2) if a.shape[2] else a for a in self.rows]
        else:
            super().trim(n)


class _LengthenedGrowing(Growing):
    def rewind(self, to: int) -> None:
        if (n := to - self.offset) > 0:
            config, dtype = self.config, DTYPES[self.config.dtype]
            self.append(*(np.zeros((1, config.kv_heads, n, dim), dtype) for dim in (config.k_dim, config.v_dim)))
        else:
            super().rewind(to)


class LengthensAndSaves(Reference):
    """Rewinds to more than there is: it then has rows that nobody gave it, and saves them too."""

    caches: ClassVar = {**Reference.caches, "growing": _LengthenedGrowing}

    def describe(self) -> dict[str, Any]:
        """Two chapters, by what is seen."""
        return {**super().describe(), "chapters": {"growing": "visible", "snapshot": "visible"}}


class KeysGrowAlone:
    """Buffers that grow by steps: those of the keys first, so that values of another width come too late."""

    def __init__(self, step: int) -> None:
        self.step, self.offset, self.rows = step, 0, list[Any]()

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        if new[0].shape[:3] != new[1].shape[:3]:
            raise ValueError("as many keys as values")
        self.rows = self.rows or [a[:, :, :0] for a in new]
        end = self.offset + new[0].shape[2]
        if any(a.dtype != b.dtype for a, b in zip(self.rows, new, strict=True)):
            raise TypeError("rows of another dtype")
        for i, a in enumerate(new) if end > self.rows[0].shape[2] else ():
            room = np.zeros((*a.shape[:2], -(-a.shape[2] // self.step) * self.step, a.shape[3]), a.dtype)
            self.rows[i] = np.concatenate([self.rows[i], room], axis=2)
        for a, b in zip(self.rows, new, strict=True):
            a[:, :, self.offset : end] = b
        self.offset = end
        return self.rows[0][:, :, :end], self.rows[1][:, :, :end]


GROWING: dict[str, Any] = {"kind": "growing", "without": ("ask",), "dialect": {"growing.shape": "first append"}}
growing_forgets = adapter(Forgets, make=lambda config: Forgets(1 << 20), **GROWING)
lengthens = adapter(Lengthens, make=lambda config: Lengthens(1 << 20), **GROWING)
lengthens_in_rounds = adapter(
    Lengthens, make=lambda config: Lengthens(1 << 20), commit=lambda c, n: c.trim(n), **GROWING
)
keys_grow_alone = from_update(
    "KeysGrowAlone",
    make=lambda config: KeysGrowAlone(config.step),
    update=lambda c, keys, values: c.update_and_fetch(keys, values),
    length=lambda c: c.offset,
    **GROWING,
)
