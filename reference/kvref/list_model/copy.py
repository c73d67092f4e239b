"""The list model of a buffer: the list of all that was ever written, and what a slot holds is one line."""

from __future__ import annotations

from kvref.cite import cite
from kvspec.errors import Refused
from kvspec.geometry import LAYOUTS, Config
from kvspec.refusals import common
from kvspec.rows import ZEROED

NARROWS = {("f32", "f16"), ("f32", "bf16")}
"""Casts there are, from and to."""


class Written:
    """One buffer. Rows are known by their serials, and the list is in the order in which they were written."""

    kind = "copy"

    def __init__(self, config: Config) -> None:
        if not (common.valid(config) and config.batch == 1 and config.capacity and config.layout in LAYOUTS):
            raise common.config("COPY-16", self.kind, config)
        cite("COPY-1")
        self.config = config
        self.capacity = config.capacity
        self.written: list[tuple[int, int]] = []
        """Position, row."""

    @property
    def slots(self) -> list[int]:
        """What each slot holds: the last row written to a position that is the slot, modulo the capacity."""
        last = {position % self.capacity: row for position, row in self.written}
        return [last.get(slot, ZEROED) for slot in range(self.capacity)]

    def copy(self, rows: list[int], at: int, sliding: bool) -> None:
        """Write rows to the positions from `at` on."""
        if at < 0:
            raise Refused("COPY-21", "a position below 0")
        if not sliding and at + len(rows) > self.capacity:
            raise Refused("COPY-22", "a position beyond the capacity")
        cite("COPY-5" if sliding else "COPY-4", *(("COPY-6",) if len(rows) > self.capacity else ()))
        self.written += [(at + i, row) for i, row in enumerate(rows)]

    def takes(self, dtype: str) -> bool:
        """Whether rows of this dtype can be copied here."""
        if dtype == self.config.dtype:
            cite("COPY-11")
            return True
        cite("COPY-12", "COPY-13", "COPY-14", "COPY-15")
        return (dtype, self.config.dtype) in NARROWS

    def key(self) -> tuple[int, ...]:
        """Its state up to renaming rows: which slots were never written."""
        return tuple(slot for slot, row in enumerate(self.slots) if row == ZEROED)
