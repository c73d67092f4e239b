"""Engines with known deviations, planted in the engine of `update_engines`."""

from __future__ import annotations

from typing import Any

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
growing_forgets = adapter(
    Forgets,
    kind="growing",
    make=lambda config: Forgets(1 << 20),
    without=("ask",),
    dialect={"growing.shape": "first append"},
)
