"""Pools of pages, of the chapters PAGE and KEY: what all of their adapters have.

An adapter derives its pool from `Pool`, or from a class of `kvadapters.keyed`, and keeps there what is its engine's
own. Numbers of sequences are given here, each with what the engine knows the sequence by.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from kvspec.geometry import Config, valid


class Pool:
    """The sequences of a pool, by number."""

    length: Callable[[Any], int]
    """Counts the rows of a sequence, by what the engine knows it by."""

    def __init__(self, config: Config) -> None:
        known = config.page_size and config.pages and config.debug in (None, 1)
        if not valid(config) or config.batch != 1 or not known:
            raise ValueError(f"no pool of {config}")
        self.config, self.size, self.pages = config, int(config.page_size or 0), int(config.pages or 0)
        self.all = dict[int, Any]()

    def unused(self) -> int:
        """The lowest number that no sequence has."""
        return next(number for number in count() if number not in self.all)

    def added(self, new: Any) -> int:
        """Give a sequence a number."""
        number = self.unused()
        self.all[number] = new
        return number

    def needs(self, begin: int, end: int) -> int:
        """Count the pages that rows need beside those that the rows before them have."""
        return -(-end // self.size) - -(-begin // self.size)

    def sequences(self) -> list[int]:
        """The rows of each sequence."""
        numbers = range(max(self.all, default=-1) + 1)
        return [self.length(self.all[i]) if i in self.all else -1 for i in numbers]
