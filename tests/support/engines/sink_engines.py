"""A small engine that keeps its first rows beside a window, in numpy, and faults planted in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Config, Pair, fits, valid


class SinkCache:
    """The sinks, the newest R - 1 others, and the rows of the last update, in position order."""

    def __init__(self, config: Config) -> None:
        window, self.sinks = config.window or 0, config.sinks or 0
        self.recent = window if config.beside else window - self.sinks
        flags = {config.beside, config.shifted}
        if not valid(config) or min(window, self.sinks, self.recent) < 1 or not flags <= {None, 1}:
            raise ValueError("no such cache")
        self.config, self.offset = config, 0
        self.dropped = self.chosen_at = 0
        self.rows: list[Any] = []
        self.positions: list[int] = []

    @property
    def most(self) -> int:
        """Rows that a query sees."""
        return self.sinks + self.recent

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        keys, values = new
        if not fits(self.config, Pair(keys, values)):
            raise ValueError("other rows")
        old, rows = self.kept(), self.rows or [a[:, :, :0] for a in new]
        n = keys.shape[2]
        self.positions = [*(self.positions[i] for i in old), *range(self.offset, self.offset + n)]
        self.rows = [np.concatenate([a[:, :, old], b], axis=2) for a, b in zip(rows, new, strict=True)]
        self.offset += keys.shape[2]
        return self.rows[0], self.rows[1]

    def kept(self) -> list[int]:
        """The old rows that an update keeps."""
        held = list(range(self.rows[0].shape[2] if self.rows else 0))
        return held[: self.sinks] + held[max(self.sinks, len(held) - (self.recent - 1)) :]

    def make_mask(self, n: int) -> Any:
        columns = min(self.count, self.most - 1) + n
        query, column = np.arange(columns - n, columns)[:, None], np.arange(columns)
        return (column <= query) & self.shown(query, column)

    def shown(self, query: Any, column: Any) -> Any:
        """What the cache itself lets each query see."""
        return (column < self.sinks) | (query - column < self.recent)

    def trim(self, n: int) -> None:
        if n and not (0 < n <= self.offset - self.chosen_at and self.count <= self.largest()):
            raise ValueError(f"cannot trim {n} of {self.offset}")
        self.rows = [a[:, :, : a.shape[2] - n] for a in self.rows]
        self.positions = self.positions[: len(self.positions) - n]
        self.offset -= n

    @property
    def count(self) -> int:
        """The rows that came, without those that were not chosen."""
        return self.offset - self.dropped

    def keep(self, positions: Any) -> None:
        """Gather the rows of these positions."""
        held = range(len(self.positions))
        seen = {self.positions[i]: i for i in held if i < self.sinks or i >= len(held) - self.recent}
        if not positions or len(set(positions)) < len(positions):
            raise ValueError("no row, or one twice")
        index = sorted(seen[p] for p in positions)
        if len(index) < self.count:
            self.dropped, self.chosen_at = self.offset - len(index), self.offset
        self.rows = [a[:, :, index] for a in self.rows]
        self.positions = [self.positions[i] for i in index]

    def largest(self) -> int:
        """The largest offset from which it goes back."""
        return self.most


class HidesSinks(SinkCache):
    """Masks by the distance of columns alone, as if its first rows were old."""

    def shown(self, query: Any, column: Any) -> Any:
        return query - column < self.most


class DropsSinks(SinkCache):
    """Keeps as many rows, and not the first ones."""

    def kept(self) -> list[int]:
        held = list(range(self.rows[0].shape[2] if self.rows else 0))
        return held[max(0, len(held) - (self.most - 1)) :]

    def shown(self, query: Any, column: Any) -> Any:
        return query - column < self.most


class CountsNone(SinkCache):
    """Leaves its window beside the sinks, whatever the config says."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.recent = config.window or 0


class CountsWhatIsLeft(SinkCache):
    """Takes the rows that are kept for all that came."""

    def keep(self, positions: Any) -> None:
        super().keep(positions)
        self.offset, self.dropped, self.chosen_at = len(self.positions), 0, 0


class GoesBackPastADrop(SinkCache):
    """Trims what it holds, though rows before it were dropped."""

    def largest(self) -> int:
        return self.offset


class StopsEarly(SinkCache):
    """Goes back no more as soon as it is full."""

    def largest(self) -> int:
        return self.most - 1


def adapter(engine: Any, **more: Any) -> UpdateAdapter:
    """The adapter of such a cache."""
    return from_update(
        "sinks",
        kind="sink",
        make=engine,
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        length=lambda cache: cache.offset,
        trim=lambda cache, n: cache.trim(n),
        to_engine=np.array,
        from_engine=np.array,
        also=("batch", "step", "counted", "beside", "kept", "shifted"),
        **more,
    )


MASK: dict[str, Any] = {"mask": lambda cache, n: cache.make_mask(n)}

KEEP: dict[str, Any] = {"keep": lambda cache, positions: cache.keep(positions)}

right = adapter(SinkCache, **MASK)
unmasked = adapter(SinkCache)
hides_sinks = adapter(HidesSinks, **MASK)
drops_sinks = adapter(DropsSinks, **MASK)
counts_none = adapter(CountsNone, **MASK)
keeping = adapter(SinkCache, **MASK, **KEEP)
counts_what_is_left = adapter(CountsWhatIsLeft, **MASK, **KEEP)
goes_back_past_a_drop = adapter(GoesBackPastADrop, **MASK)
stops_early = adapter(StopsEarly, **MASK)
stops_early_and_says_so = adapter(StopsEarly, dialect={"sink.full": "refused"}, **MASK)
says_so_and_does_not = adapter(SinkCache, dialect={"sink.full": "refused"}, **MASK)
