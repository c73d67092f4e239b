"""Bugs in what operations cost, planted in the reference: hidden copies, crossings and allocations."""

from __future__ import annotations

from typing import Any

from kvconform.mutants.planting import planted
from kvref import meter
from kvref.growing import Growing
from kvref.rows import Rows


@planted("GROW-08", breaks="RESIDENCY-3", anomaly="needless-traffic", seen="ROCm/hip-ep/pull/989")
class Anew(Growing):
    """Every append copies past and new rows into a new buffer, though the new rows fit behind the past ones."""

    def _feed(self, new: Any) -> None:
        capacity = len(self.rows)
        super()._feed(new)
        if len(self.rows) == capacity:
            self.rows = self.rows.taken(list(range(capacity)))


@planted("ASYNC-09", breaks="RESIDENCY-6", anomaly="needless-traffic", seen="infinigence/ApxInf/pull/89")
class Clearing(Growing):
    """A rewind to 0 allocates a new buffer, so that captured work reads the freed one."""

    def rewind(self, to: int) -> None:
        super().rewind(to)
        if to == 0:
            slots, self.rows = len(self.rows), Rows(self.config)
            self.rows.grow(slots, 0)


@planted("ASYNC-04", breaks="RESIDENCY-11", anomaly="needless-traffic", seen="NVIDIA/TensorRT-LLM/issues/8813")
class Offloaded(Growing):
    """Snapshots are copied through the host, and wait for it."""

    def snapshot(self, start: int) -> Any:
        made = super().snapshot(start)
        if made is not None:
            meter.meter.device_to_host += made.nbytes
            meter.meter.synchronisations += 1
        return made
