"""A bounded cache in static memory, which hands out its whole buffer."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kvref.abilities import masks
from kvref.caches.bounded import Bounded
from kvref.memory.rows import Rows
from kvspec.contract import Pair, Readable
from kvspec.geometry import DTYPES, Array
from kvspec.masks import Explicit, Logical, Part
from kvspec.refusals import common
from kvworkshop.fakes import Fake


class StaticBounded(Bounded):
    """All memory is there from the beginning, as zeros, and a `free` leaves in it what it holds. A history is all
    of it, and its mask hides the slots without a live row."""

    @cached_property
    def memory(self) -> Rows:
        """Zeros of `max_len` slots, made once."""
        made, dtype = Rows(self.config), DTYPES[self.config.dtype]
        made.keys, made.values = (np.zeros(self.config.shape(k, self.max_len), dtype) for k in "kv")
        return made

    def _clear(self) -> None:
        super()._clear()
        self.rows = self.memory

    def read(self, what: Readable) -> Pair | None:
        """The history is all slots; view and state are the live ones."""
        return self.rows.read(0, self.max_len) if what == "history" else super().read(what)

    def mask(self, logical: Logical) -> Array | None:
        """As wide as the buffer; slots without a live row are hidden."""
        if self.queries is None:
            raise common.no_history("MASK-1")
        batch, queries = self.config.batch, self.queries
        masks.demand(logical, batch, queries, self.max_len)
        live = tuple(map(self._live, logical))
        return self._widened(masks.in_position_order(live, batch, queries, self.offset))

    def _live(self, part: Part) -> Part:
        """The part over the live slots, which come first."""
        if not isinstance(part, Explicit) or part.array.shape[3] == 1:
            return part
        return Explicit(part.array[..., : self.offset])

    def _widened(self, mask: Array | None) -> Array | None:
        """A mask over the live slots, with all other slots hidden."""
        spare = self.max_len - self.offset
        if spare == 0:
            return mask
        mask = np.ones((1, 1, self.queries or 0, 1), np.bool_) if mask is None else mask
        live = np.broadcast_to(mask, (*mask.shape[:3], self.offset))
        hidden = np.full((*mask.shape[:3], spare), False if mask.dtype == bool else -np.inf, mask.dtype)
        return np.concatenate([live, hidden], axis=3)


class RowLimit(Fake):
    """A static cache with a limit on its rows, at level visible. It hands out its whole buffer and hides what is
    spare."""

    bounded: ClassVar[Any] = StaticBounded
    chapters: ClassVar[dict[str, Any]] = {"bounded": "visible", "mask": "visible"}
