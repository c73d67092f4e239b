"""Bounded caches in the list model: the tokens of a growing cache, `max_len` of them at most."""

from __future__ import annotations

from kvref.cite import cite
from kvref.list_model.attention import KnownRows
from kvref.list_model.growing import GrowingModel
from kvref.list_model.rows import Rows
from kvspec.contract import Claim
from kvspec.geometry import Config
from kvspec.refusals import common


class BoundedModel(GrowingModel):
    """A growing cache with an end."""

    appended = "BOUNDED-1", "BOUNDED-15"
    viewed = "BOUNDED-10"
    rewound = unmoved = ("BOUNDED-6",)

    def __init__(self, kind: str, config: Config, claim: Claim, known: KnownRows) -> None:
        if config.max_len is None:
            raise common.config("CACHE-3", kind, config)
        super().__init__(kind, config, claim, known)
        self.max_len, self.total = config.max_len, 0
        """Rows that it can hold, and rows that it took in its life."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        """Refuse rows of another geometry, then more rows than there is room for."""
        super().demand_rows(keys, values)
        if self.offset + keys.n > self.max_len:
            raise common.no_room("BOUNDED-2", keys.n, self.offset, self.max_len)

    def take(self, serials: list[int]) -> None:
        """Take tokens in; there is room for them."""
        super().take(serials)
        self.total += len(serials)
        if serials:
            cite(*["BOUNDED-3"] * (self.offset == self.max_len), *["BOUNDED-5"] * (self.total > self.max_len))


model = BoundedModel
