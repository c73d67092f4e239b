"""Engines that keep a dialect or a limit, as their adapters are before anybody declared it."""

from __future__ import annotations

from typing import Any

from kvadapters.update import UpdateAdapter, from_update
from support.engines.dialect_rings import StrictlyBelow
from support.engines.update_engines import WindowCache

FIRST = {"ring.shape": "first append"}


class OneByOne(WindowCache):
    """Takes one row at once."""

    def update_and_fetch(self, *new: Any) -> tuple[Any, Any]:
        if new[0].shape[2] != 1:
            raise ValueError("one row at a time")
        return super().update_and_fetch(*new)


class StaleRows(WindowCache):
    """Counts its rows right after a trim, and keeps them."""

    def trim(self, n: int) -> None:
        rows = self.rows
        super().trim(n)
        self.rows = rows


def of(engine: type[WindowCache], **said: Any) -> UpdateAdapter:
    return from_update(
        engine.__name__,
        kind="ring",
        make=lambda config: engine(config.window),
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        length=lambda cache: cache.offset,
        trim=lambda cache, n: cache.trim(n),
        dialect=FIRST,
        said=said,
    )


below = of(StrictlyBelow)
one_by_one = of(OneByOne, limits={"append": 1})
stale_rows = of(StaleRows)
