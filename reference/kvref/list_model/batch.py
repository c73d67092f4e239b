"""The list model of a batch: for each sequence the list of its rows in every layer, and a length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvref.cite import cite
from kvspec.errors import Refused
from kvspec.refusals import common

LIMIT = 32
"""Sequences allowed by default."""


@dataclass
class Listed:
    """One sequence: what a layer holds of it is its list there."""

    rows: list[list[int]]
    length: int = 0

    def cut(self, to: int) -> None:
        """No list is longer than the length."""
        self.length = to
        self.rows = [rows[:to] for rows in self.rows]


class Sequences:
    """A batch of a store of so many layers, each with room for `room` rows. `places`: the most it can become."""

    def __init__(self, layers: int, room: int, places: int) -> None:
        self.layers, self.room, self.places = layers, room, places
        self.all: list[Listed] = []

    def become(self, m: int) -> None:
        """m sequences of length 0."""
        cite("BATCH-1")
        self.all = [Listed([[] for _ in range(self.layers)]) for _ in range(m)]

    def key(self) -> tuple[tuple[int, ...], ...]:
        """The state up to renaming rows."""
        return (self.places,), *((s.length, *map(len, s.rows)) for s in self.all)

    def _one(self, sequence: int) -> Listed:
        if sequence not in range(len(self.all)):
            raise common.sequence("BATCH-9", sequence, len(self.all))
        return self.all[sequence]

    def scatter(self, sequence: int, n: int, layer: int | None, store: Sequence[Sequence[int]]) -> None:
        """The first n of each of the store's lists that are meant."""
        one = self._one(sequence)
        if layer is not None and layer not in range(self.layers):
            raise common.layer("BATCH-9", layer, self.layers)
        meant = [i for i in range(self.layers) if layer in (None, i)]
        for i in meant:
            if n not in range(len(store[i]) + 1):
                raise common.scatter("BATCH-10", n, i, len(store[i]))
        cite("BATCH-8" if layer is not None else "BATCH-6", "BATCH-11", "BATCH-12", *([] if n else ["BATCH-7"]))
        one.cut(n)
        for i in meant:
            one.rows[i] = list(store[i][:n])

    def step(self, serials: Sequence[Sequence[int]], fitting: bool) -> None:
        """Append one row to each: `serials[layer][sequence]`."""
        if not fitting:
            raise Refused("BATCH-14", "rows of another geometry")
        for i, one in enumerate(self.all):
            if one.length == self.room:
                raise common.full("BATCH-15", i, self.room)
        for i, one in enumerate(self.all):
            if any(len(rows) < one.length for rows in one.rows):
                raise common.hole("BATCH-16", i, [len(rows) for rows in one.rows], one.length)
        cite("BATCH-13")
        for i, one in enumerate(self.all):
            one.length += 1
            for layer, rows in enumerate(one.rows):
                rows.append(serials[layer][i])

    def rollback(self, sequence: int, to: int) -> None:
        """One sequence is no longer than this."""
        one = self._one(sequence)
        if to < 0:
            raise common.rollback("BATCH-18", to)
        cite("BATCH-17", "BATCH-11", "BATCH-12")
        one.cut(min(one.length, to))

    def reset(self) -> None:
        """Every sequence is empty."""
        cite("BATCH-19", "BATCH-11")
        for one in self.all:
            one.cut(0)


def made(before: Sequences | None, m: int, most: int | None, layers: int, room: int) -> Sequences:
    """A batch of m: the one before, if it can become that; its captured work stays valid then."""
    allowed = LIMIT if most is None else most
    if m < 1 or m > allowed:
        raise common.batch_size("BATCH-2", m, allowed)
    fits = before is not None and m <= before.places
    batch = before if before is not None and fits else Sequences(layers, room, m)
    cite("BATCH-11")
    batch.become(m)
    return batch


def there(batch: Sequences | None, what: str) -> Sequences:
    """The batch, where there is one."""
    if batch is None:
        raise common.no_batch("BATCH-3", what)
    return batch


def ended(batch: Sequences | None) -> None:
    """What is left of a batch when the store begins anew."""
    if batch is not None:
        cite("BATCH-5")


class Work:
    """A captured step of a batch."""

    def __init__(self, batch: Sequences) -> None:
        cite("BATCH-23")
        self.batch, self.m = batch, len(batch.all)

    def replayable(self, batch: Sequences | None) -> None:
        """Refuse a replay on any batch but the one it was captured for, and in another number of sequences."""
        if batch is not self.batch:
            raise common.dropped("BATCH-26")
        if len(self.batch.all) != self.m:
            raise common.captured_size("BATCH-27", self.m, len(self.batch.all))
