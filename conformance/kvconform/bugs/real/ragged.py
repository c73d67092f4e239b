"""Bugs of batches of unequal lengths, planted in the reference's ragged cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvconform.bugs.planting import planted
from kvref.caches.ragged import Ragged
from kvspec.geometry import Array


@planted("DTYPE-09", breaks="RAGGED-16 RAGGED-17", anomaly="half-restored")
class OnlyTheNewestMoves(Ragged):
    """A filter or a reorder moves the newest row of each sequence, and leaves the older ones where they were."""

    def filter(self, order: Sequence[int]) -> None:
        old = [self.read_sequence(s) for s in range(len(self.lengths))]
        super().filter(order)
        for s, n in enumerate(self.held[: len(old)]):
            for block, rows in zip(self.block, old[s], strict=True):
                stay = min(max(0, n - 1), rows.shape[1])
                block[s, :, self._start(s) : self._start(s) + stay] = rows[:, :stay]


@planted("MERGE-04", breaks="RAGGED-21", anomaly="keys-without-values")
class KeysForValues(Ragged):
    """A join puts keys where values should be."""

    def join(self, others: Sequence[Any]) -> None:
        super().join(others)
        keys, values = self.block
        values[...] = keys[..., [i % keys.shape[3] for i in range(values.shape[3])]]


@planted("PAGE-12", breaks="RAGGED-24 RAGGED-17", anomaly="overwritten-rows")
class BeamsStayTogether(Ragged):
    """Sequences that a reorder made of one share their rows: what is fed to one of them is fed to all."""

    beams: Sequence[int] = ()

    def reorder(self, order: Sequence[int]) -> None:
        super().reorder(order)
        self.beams = order

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        super().feed(keys, values, lengths)
        beams = self.beams if len(self.beams) == len(self.lengths) else ()
        for s, beam in enumerate(beams):
            first = beams.index(beam)
            if self.held[first] == self.held[s]:
                for block in self.block:
                    block[s] = block[first]
