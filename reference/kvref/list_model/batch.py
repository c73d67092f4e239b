"""The list model of a batch: for each sequence the list of its rows in every layer, and a length."""

from __future__ import annotations

from dataclasses import dataclass

from kvref.cite import cite
from kvref.list_model.rows import Rows, fit
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.refusals import common

LIMIT = 32
"""Sequences allowed by default."""


@dataclass
class BatchSequence:
    """One sequence: what a layer holds of it is its list there."""

    rows: list[list[int]]
    length: int = 0

    def cut(self, to: int) -> None:
        """No list is longer than the length."""
        self.length = to
        self.rows = [rows[:to] for rows in self.rows]


class BatchModel:
    """A batch of a store with this many layers, each with room for `room` rows. `places`: the most sequences that
    it can have."""

    def __init__(self, layers: int, room: int, places: int) -> None:
        self.layers, self.room, self.places = layers, room, places
        self.all: list[BatchSequence] = []

    def become(self, m: int) -> None:
        """m sequences of length 0."""
        cite("BATCH-1")
        self.all = [BatchSequence([[] for _ in range(self.layers)]) for _ in range(m)]

    def key(self) -> tuple[tuple[int, ...], ...]:
        """The state up to renaming rows."""
        return (self.places,), *((s.length, *map(len, s.rows)) for s in self.all)

    def one(self, sequence: int) -> BatchSequence:
        """The sequence of this number."""
        if sequence not in range(len(self.all)):
            raise common.sequence("BATCH-9", sequence, len(self.all))
        return self.all[sequence]


class BatchingModel:
    """What a store is as well. It has the attributes below."""

    config: Config
    room: int
    batched: BatchModel | None
    """The batch, where there is one."""

    def live(self) -> list[list[int]]:
        """The serials of each layer's live rows."""
        raise NotImplementedError

    def batch(self, m: int, most: int | None = None) -> None:
        """Make a batch of m. The batch before becomes it if that is possible; then its captured work stays
        valid."""
        allowed = LIMIT if most is None else most
        if m < 1 or m > allowed:
            raise common.batch_size("BATCH-2", m, allowed)
        if self.batched is None or m > self.batched.places:
            self.batched = BatchModel(len(self.live()), self.room, m)
        cite("BATCH-11")
        self.batched.become(m)

    def there(self, what: str) -> BatchModel:
        """The batch. Refuses what is asked of none."""
        if self.batched is None:
            raise common.no_batch("BATCH-3", what)
        return self.batched

    def end_batch(self) -> None:
        """What is left of a batch when the store starts again."""
        if self.batched is not None:
            cite("BATCH-5")
        self.batched = None

    def sequences(self) -> list[int] | None:
        """The length of each sequence; None where there is no batch."""
        return None if self.batched is None else [one.length for one in self.batched.all]

    def read_sequence(self, layer: int, sequence: int) -> list[int]:
        """What a layer holds of a sequence."""
        return self.there("read").all[sequence].rows[layer]

    def addresses(self) -> tuple[int, ...]:
        """Where buffers lie is not for this model to know."""
        return ()

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """The first n rows of each of the store's layers that are meant."""
        batch, live = self.there("scatter"), self.live()
        one = batch.one(sequence)
        if layer is not None and layer not in range(batch.layers):
            raise common.layer("BATCH-9", layer, batch.layers)
        meant = [i for i in range(batch.layers) if layer in (None, i)]
        for i in meant:
            if n not in range(len(live[i]) + 1):
                raise common.scatter("BATCH-10", n, i, len(live[i]))
        cite("BATCH-8" if layer is not None else "BATCH-6", "BATCH-12", *([] if n else ["BATCH-7"]))
        cite(*(["BATCH-11"] if n < one.length else []))
        one.cut(n)
        for i in meant:
            one.rows[i] = live[i][:n]

    def step(self, keys: Rows, values: Rows) -> None:
        """A new row for each sequence, layer upon layer."""
        batch = self.there("step")
        if not fit(keys, values, self.config, batch.layers, len(batch.all), self.config.kv_heads):
            raise Refused("BATCH-14", "rows of another geometry")
        for i, one in enumerate(batch.all):
            if one.length == batch.room:
                raise common.full("BATCH-15", i, batch.room)
        for i, one in enumerate(batch.all):
            if any(len(rows) < one.length for rows in one.rows):
                raise common.hole("BATCH-16", i, [len(rows) for rows in one.rows], one.length)
        cite("BATCH-13")
        for i, one in enumerate(batch.all):
            one.length += 1
            for layer, rows in enumerate(one.rows):
                rows.append(keys.serials[layer][i])

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """One sequence is no longer than this."""
        one = self.there("rollback of a sequence").one(sequence)
        if to < 0:
            raise common.rollback("BATCH-18", to)
        cite("BATCH-17", "BATCH-12", *(["BATCH-11"] if to < one.length else []))
        one.cut(min(one.length, to))

    def reset_batch(self) -> None:
        """Every sequence is empty."""
        batch = self.there("reset")
        cite("BATCH-19", "BATCH-11")
        for one in batch.all:
            one.cut(0)

    def free_batch(self) -> None:
        """No batch."""
        cite("BATCH-20")
        self.batched = None

    def capture(self) -> CapturedStep:
        """A step, captured."""
        return CapturedStep(self, self.there("capture"))


class CapturedStep:
    """A captured step of a batch."""

    def __init__(self, store: BatchingModel, batch: BatchModel) -> None:
        cite("BATCH-23")
        self.store, self.batch, self.m = store, batch, len(batch.all)

    def replay(self, keys: Rows, values: Rows) -> None:
        """The step, on the batch it was captured for, and in that number of sequences."""
        if self.store.batched is not self.batch:
            raise common.dropped("BATCH-26")
        if len(self.batch.all) != self.m:
            raise common.captured_size("BATCH-27", self.m, len(self.batch.all))
        self.store.step(keys, values)
        cite("BATCH-24", "BATCH-25")
