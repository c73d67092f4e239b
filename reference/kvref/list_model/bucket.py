"""The list model of a bucketed cache: for each layer the list of its rows. What a query sees is all of them.

Of the device it knows no more than whether there are handles, whether the host has newer rows than they hold, and
whether a block was left in them: that is what steps are refused for.
"""

from __future__ import annotations

from kvref.cite import cite
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.refusals import bucket, common

Rows = list[list[int]]
"""Serials, layer by layer."""


class Listed:
    """One cache: `layers` are its past rows, `host` those of them that the host has."""

    kind = "bucket"

    def __init__(self, config: Config) -> None:
        words = (config.bounds or "0").split("-")
        bounds = [int(word) for word in words]
        if not common.valid(config) or bounds[0] < 1 or bounds != sorted(set(bounds)):
            raise bucket.config("BUCKET-1", config)
        cite("BUCKET-1")
        self.config, self.largest = config, bounds[-1]
        self.layers: Rows = [[] for _ in range(config.layers or 0)]
        self.host: Rows = self.layers
        self.installed = self.stale = self.blocked = False
        self.encoded: Rows | None = None

    @property
    def past(self) -> int:
        """Rows of each layer."""
        return len(self.layers[0])

    def key(self) -> tuple[int | bool | None, ...]:
        """The state up to renaming rows."""
        encoded = None if self.encoded is None else len(self.encoded[0])
        return self.past, len(self.host[0]), self.installed, self.stale, self.blocked, encoded

    def prefill(self, serials: Rows) -> None:
        """These rows replace all others."""
        cite("BUCKET-2")
        self.layers = self.host = serials
        self.stale = self.installed

    def ready(self, refresh: bool) -> None:
        """Handles are there for a step; or it is refused."""
        if self.past > self.largest:
            raise bucket.beyond("BUCKET-8", self.past, self.largest)
        if refresh:
            self._refresh()
        elif self.stale:
            raise bucket.stale("BUCKET-9", self.past)
        elif self.blocked:
            raise Refused("BUCKET-16", "a block was not unbound")
        cite("BUCKET-8", "BUCKET-12", "BUCKET-17")
        self.installed = True

    def _refresh(self) -> None:
        if len(self.host[0]) < self.past:
            raise bucket.short("BUCKET-11", len(self.host[0]), self.past)
        cite("BUCKET-10")
        self.layers = self.host
        self.stale = self.blocked = False

    def agreed(self, past: int | None) -> None:
        """Refuse a caller that counts on another length."""
        if past is not None and past != self.past:
            raise bucket.disagrees("BUCKET-7", past, self.past)

    def seen(self, new: Rows) -> list[list[list[int]]]:
        """For each layer what each query of new rows sees: all past ones, and the new ones up to its own."""
        cite("BUCKET-5", "BUCKET-29")
        return [
            [before + own[: i + 1] for i in range(len(own))] for before, own in zip(self.layers, new, strict=True)
        ]

    def decode(self, new: Rows) -> None:
        """Append a row to each layer."""
        cite("BUCKET-4")
        self.layers = [before + own for before, own in zip(self.layers, new, strict=True)]

    def block(self, n: int) -> None:
        """A block appends no row."""
        cite("BUCKET-14", *(["BUCKET-15"] if self.past + n > self.largest else []))
        self.blocked = True

    def unbind(self) -> None:
        """Forget the rows that a block left."""
        cite("BUCKET-17")
        self.blocked = False

    def sync(self) -> None:
        """The host has all rows."""
        cite("BUCKET-18")
        self.host = self.layers

    def cut(self, to: int) -> None:
        """The first rows only, here and on the host."""
        if to not in range(self.past + 1):
            raise bucket.cut("BUCKET-20", to, self.past)
        cite("BUCKET-19")
        self.layers, self.host = ([rows[:to] for rows in layers] for layers in (self.layers, self.host))

    def encode(self, serials: Rows) -> None:
        """These rows replace all others."""
        cite("BUCKET-24")
        self.encoded = serials

    def cross(self) -> Rows:
        """What every query sees, layer by layer."""
        if self.encoded is None:
            raise bucket.no_encoding("BUCKET-25")
        cite("BUCKET-22", "BUCKET-23")
        return self.encoded
