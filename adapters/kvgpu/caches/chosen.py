"""Rows that a caller chose: by their numbers where they were appended, and on the device put behind each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import Slots
from kvgpu.memory.layout import Geometry, Place
from kvgpu.runtime import Work
from kvspec.geometry import Array

ENTRY = np.dtype(np.int32)
"""A number of a row on the device."""


@dataclass(frozen=True)
class Chosen:
    """Which rows a cache has had: those of some positions, chosen at an offset, and all that came since."""

    first: tuple[int, ...] = ()
    since: int = 0

    def rows(self, offset: int) -> int:
        """Count them."""
        return offset - self.since + len(self.first)

    def positions(self, numbers: Array) -> Array:
        """Where the rows of these numbers were appended."""
        chosen, later = np.array(self.first, np.int64), numbers + (self.since - len(self.first))
        return np.where(numbers < len(chosen), chosen[numbers % len(chosen)], later) if len(chosen) else later


ALL = Chosen()
"""All rows that were appended."""


def together(store: Slots, slots: Sequence[int]) -> None:
    """Put the rows of these slots behind each other, from the first slot on. One launch takes them to scratch
    space, by a table of each head's slots. A second one takes them back."""
    if store.rows is None or list(slots) == [*range(len(slots))]:
        return
    aside = store.space.other(store.geometry, len(slots))
    _gather(store.space, store.geometry, store.rows.place, slots, aside)
    store.put(len(slots), aside, store.rows, 0)


def _gather(space: Workspace, geometry: Geometry, source: Place, slots: Sequence[int], to: Place) -> None:
    """Copy rows to packed ones: to the kernel of pages each row of each head is a page of one row and one head."""
    table = (np.arange(geometry.heads)[:, None] * source.slots + np.array(slots)).astype(ENTRY).reshape(-1)
    block = space.scratch("chosen", table.nbytes)
    space.runtime.upload(table.view(np.uint8), block)
    word, widths = geometry.word, geometry.widths
    starts = (at // word for at in (to.keys_at, to.values_at, source.keys_at, source.values_at))
    blocks, numbers = (to.keys, to.values, source.keys, source.values, block), (1, 1, len(table), 0)
    work = Work(max(widths), len(table), 1, 2)
    space.runtime.launch(f"page{word}", work, *blocks, *numbers, *widths, *starts, 1)
    space.runtime.meter.device_to_device += len(slots) * geometry.row_bytes
