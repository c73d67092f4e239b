"""Bugs of batches, slots and captured graphs, planted in the reference's batch."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.abilities.batch import Batch, Captured
from kvref.caches.store import Store
from kvspec.geometry import Array
from kvspec.refusals import common


@planted("ASYNC-06", breaks="BATCH-24")
class ReplayRemembers(Store):
    """Captured work writes behind the lengths of the moment of capture, one further each time."""

    def capture(self) -> Captured:
        captured = super().capture()
        at = list(captured.batch.lengths)

        def replay(keys: Array, values: Array) -> None:
            now, captured.batch.lengths = captured.batch.lengths, list(at)
            try:
                Captured.replay(captured, keys, values)
            except Exception:
                captured.batch.lengths = now
                raise
            at[:] = captured.batch.lengths

        captured.replay = replay  # type: ignore[method-assign]
        return captured


@planted("MEM-01", breaks="BATCH-20")
class StaleCount(Store):
    """A freed batch is still reported, though it can no longer be used."""

    freed = False

    def free_batch(self) -> None:
        self.freed = True

    def batch(self, m: int, most: int | None = None) -> None:
        super().batch(m, most)
        self.freed = False

    def _batch(self, what: str) -> Batch:
        if self.freed and what != "read":
            raise common.no_batch("BATCH-3", what)
        return super()._batch(what)


@planted("POS-06", breaks="BATCH-15", anomaly="silent-no-op")
class IgnoresTheFull(Store):
    """A sequence at max_len silently gets no row."""

    def step(self, keys: Array, values: Array) -> None:
        batch = self._batch("step")
        full = [n == self.max_len for n in batch.lengths]
        for s, n in enumerate(batch.lengths):
            batch.lower(s, n - full[s])
        kept = [a.copy() for a in (*batch.keys, *batch.values)]
        super().step(keys, values)
        for new, old in zip((*batch.keys, *batch.values), kept, strict=True):
            new[full] = old[full]


@planted("SLOT-10", breaks="BATCH-12")
class PositionAlone(Store):
    """A scatter writes its rows into the slots of all sequences."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        super().scatter(sequence, n, layer)
        assert self.batch_ is not None
        for array in (*self.batch_.keys, *self.batch_.values):
            array[:, :, :n] = array[sequence, :, :n]
