"""Caches of engines that are asked for room and for bytes, stores of several layers, and faults planted in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.stores import StoreAdapter, StoreFunctions
from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Config, valid
from support.engines.bounded_engines import StaticCache


class Asked(StaticCache):
    """Says whether there is room, and how many bytes its buffers have."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.bytes = 0

    def accepts(self, n: int) -> bool:
        return self.length + n <= self.room

    def checked(self, *new: Any) -> int:
        n = super().checked(*new)
        self.bytes = sum(a.nbytes for a in self.rows)
        return n


class AsksForOne(Asked):
    """Looks at one row of several."""

    def accepts(self, n: int) -> bool:
        return self.length + min(n, 1) <= self.room


class TakesRoomFirst(Asked):
    """Counts bytes before it refuses."""

    def checked(self, *new: Any) -> int:
        self.bytes += new[0].nbytes
        return super().checked(*new)


def asked(cache: type[Asked]) -> UpdateAdapter:
    return from_update(
        cache.__name__,
        kind="bounded",
        to_engine=lambda array: array,
        from_engine=lambda array: array,
        make=cache,
        update=lambda one, keys, values: one.update(keys, values),
        length=lambda one: one.length,
        accepts=lambda one, n: one.accepts(n),
        held=lambda one: one.bytes,
        trim=lambda one, n: one.trim(n),
        can_trim=lambda one, n: 0 <= n <= one.length,
        said={"version": "1"},
    )


def layers(config: Config) -> list[StaticCache]:
    """A cache for each layer, whose buffers are there."""
    if not valid(config):
        raise ValueError("a size below 1")
    return [StaticCache(config.changed(layers=None)) for _ in range(config.layers or 0)]


def update(caches: list[StaticCache], layer: int, *rows: Any) -> None:
    """Refuse rows beyond the room of a layer."""
    if caches[layer].length + rows[0].shape[2] > caches[layer].room:
        raise ValueError("no room")
    caches[layer].update(*rows)


def zero(caches: list[StaticCache]) -> None:
    for cache in caches:
        cache.length, cache.rows = 0, []


def zero_all_but_the_last(caches: list[StaticCache]) -> None:
    zero(caches[:-1])


def swapped(caches: list[StaticCache], layer: int, *rows: Any) -> None:
    """Give a layer the rows of its neighbour's head."""
    update(caches, layer, *(np.flip(a, 1) for a in rows))


def store(**functions: Any) -> StoreAdapter:
    given: dict[str, Any] = {
        "make": layers,
        "update": update,
        "length": lambda caches, layer: caches[layer].length,
        "buffers": lambda caches, layer: tuple(caches[layer].rows) or None,
        "to_engine": lambda array: array,
        "from_engine": lambda array: array,
        "zero": zero,
        "trim": lambda caches, layer, n: caches[layer].trim(n),
    }
    return StoreAdapter("a store", StoreFunctions(**{**given, **functions}), {"version": "1"})


right, asks_for_one, takes_room_first = asked(Asked), asked(AsksForOne), asked(TakesRoomFirst)
stored, swaps = store(), store(update=swapped)
clears_too_few = store(zero=zero_all_but_the_last)
trims_one_more = store(trim=lambda caches, layer, n: caches[layer].trim(n + 1))
