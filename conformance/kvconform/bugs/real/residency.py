"""Bugs in what operations cost, planted in the reference: hidden copies, crossings and allocations."""

from __future__ import annotations

from typing import Any

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing
from kvref.memory import meter


@planted("ASYNC-04", breaks="RESIDENCY-11", anomaly="needless-traffic")
class Offloaded(Growing):
    """Snapshots are copied through the host, and wait for it."""

    def snapshot(self, start: int) -> Any:
        made = super().snapshot(start)
        if made is not None:
            meter.meter.device_to_host += made.nbytes
            meter.meter.synchronisations += 1
        return made
