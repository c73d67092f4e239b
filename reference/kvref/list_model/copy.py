"""The list model of a buffer: the list of all that was ever written, and what a slot holds is one line."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from kvref.cite import cite
from kvref.list_model import forms
from kvref.list_model.rows import Rows
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, WORDS, Config
from kvspec.refusals import common
from kvspec.rows.serials import ZEROED

NARROWS = {("f32", "f16"), ("f32", "bf16")}
"""Casts there are, from and to."""


class Overlap(NamedTuple):
    """A buffer's own rows from a slot on, as a source."""

    source: int


class BufferModel:
    """One buffer. Rows are known by their serials, listed in the order in which they were written."""

    kind = "copy"

    def __init__(self, config: Config, known: object, claim: Claim) -> None:
        known = config.layout in WORDS["layout"]
        if not (common.valid(config) and config.batch == 1 and config.capacity and known):
            raise common.config("CACHE-3", self.kind, config)
        cite("COPY-1")
        self.config, self.claim = config, claim
        self.capacity = config.capacity
        self.written: list[tuple[int, int]] = []
        """Position, row."""

    @property
    def slots(self) -> list[int]:
        """What each slot holds: the last row written to a position that is the slot, modulo the capacity."""
        last = {position % self.capacity: row for position, row in self.written}
        return [last.get(slot, ZEROED) for slot in range(self.capacity)]

    def read(self, what: str) -> list[int]:
        """Every slot."""
        return self.slots

    def plan(self, n: int) -> tuple[int, ...]:
        """How many bytes is for the adapter to say."""
        return ()

    def alias(self, source: int, n: int) -> tuple[Overlap, Overlap]:
        """The buffer's own rows, which are no source."""
        return Overlap(source), Overlap(source)

    def copy(self, keys: Rows | Overlap, values: Rows | Overlap, n: int, at: int, sliding: bool) -> None:
        """Write the first n rows to the positions from `at` on."""
        if isinstance(keys, Overlap) or isinstance(values, Overlap):
            self._refuse_own(keys, n)
            return
        if n == 0 or not (prod(keys.shape[1:]) or prod(values.shape[1:])):
            cite("COPY-8")
            return
        self._demand(keys, values, n)
        if at < 0:
            raise Refused("COPY-21", "a position below 0")
        if not sliding and at + n > self.capacity:
            raise Refused("COPY-22", "a position beyond the capacity")
        if n > self.capacity and self.claim.dialect("laps") == "refused":
            raise Refused("COPY-6", "more rows than there are slots")
        cite("COPY-5" if sliding else "COPY-4", *(("COPY-6",) if n > self.capacity else ()))
        forms.cite_written(self.config, *(self._taken(rows, n) for rows in (keys, values)))
        self.written += [(at + i, row) for i, row in enumerate(keys.serials[0][:n])]

    def _taken(self, rows: Rows, n: int) -> Rows:
        """The first n rows, in the buffer's dtype."""
        if rows.array is None:
            return rows
        with np.errstate(over="ignore", invalid="ignore"):
            cast = rows.array[:n].astype(DTYPES[self.config.dtype])
        return rows._replace(array=cast, dtype=self.config.dtype)

    def _refuse_own(self, rows: Rows | Overlap, n: int) -> None:
        """Refuse own rows as a source, unless no rows are taken; slots beyond the capacity have no rows."""
        if n:
            there = isinstance(rows, Overlap) and rows.source < self.capacity
            raise Refused("COPY-19" if there else "COPY-20", "a source that overlaps")
        cite("COPY-8")

    def _demand(self, keys: Rows, values: Rows, n: int) -> None:
        """Refuse rows that are not fit for the buffer."""
        rows, heads = keys.n, self.config.kv_heads
        shapes = (rows, heads, self.config.k_dim), (rows, heads, self.config.v_dim)
        if (keys.shape, values.shape) != shapes:
            raise Refused("COPY-17", "rows of another geometry")
        if not self.takes(keys.dtype):
            raise Refused("COPY-18", "rows of a dtype that does not narrow")
        if rows < n:
            raise Refused("COPY-20", "a source too short")
        if rows > n:
            cite("COPY-7")

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


model = BufferModel
