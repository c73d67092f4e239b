"""Bounded caches in the list model: the tokens of a growing cache, `max_len` of them at most."""

from __future__ import annotations

from kvref.cite import cite
from kvref.list_model.caches import CacheModel
from kvref.list_model.views import View
from kvspec.refusals import common
from kvspec.refusals import parcels as refusals


class BoundedModel(CacheModel):
    """A growing cache with an end."""

    kind = "bounded"
    appended = "BOUNDED-1", "BOUNDED-15"
    viewed = "BOUNDED-10"
    rewound = unmoved = ("BOUNDED-6",)

    total = 0
    """Rows that it took in its life."""

    def _view(self) -> View:
        if self.config.max_len is None:
            raise common.config("CACHE-3", self.kind, self.config)
        self.max_len = self.config.max_len
        return super()._view()

    def _demand_chunk(self, n: int) -> None:
        """Refuse more rows than there is room for."""
        if self.offset + n > self.max_len:
            raise common.no_room("BOUNDED-2", n, self.offset, self.max_len)

    def _demand_offset(self, offset: int) -> None:
        """Refuse more rows than it can hold."""
        if offset > self.max_len:
            raise refusals.no_room("MOVE-10", offset, self.max_len)

    def take(self, serials: list[int]) -> None:
        """Take tokens in; there is room for them."""
        super().take(serials)
        self.total += len(serials)
        if serials:
            cite(*["BOUNDED-3"] * (self.offset == self.max_len), *["BOUNDED-5"] * (self.total > self.max_len))


model = BoundedModel
