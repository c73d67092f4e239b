"""Bugs of windows, wraps and rewinds, planted in the reference's ring."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.refusals import common


@planted("REUSE-05", breaks="RING-10 CACHE-9", anomaly="desynchronised-layers")
class AskedOfTheWidest(Ring):
    """Whether the rows of a prefix are still there is decided by a layer whose window is one row wider."""

    def can_rewind(self, to: int) -> bool:
        return super().can_rewind(to) or 0 <= to < self.offset == self.window + 1

    def rewind(self, to: int) -> None:
        if 0 <= to < self.offset == self.window + 1:
            self.offset = self.index = to
            self.queries = None
        else:
            super().rewind(to)


@planted("TRIM-14", breaks="RING-27 CACHE-12", anomaly="stale-cursor")
class RebasedOnce(Ring):
    """After a second rewind the index is still counted from where it stood at the last append."""

    base: tuple[int, int] | None = None

    def rewind(self, to: int) -> None:
        offset, index = self.offset, self.index
        super().rewind(to)
        if to < offset:
            self.base = self.base or (offset, index)
            self.index = max(0, self.base[1] - (offset - to))

    def append(self, keys: Array, values: Array) -> None:
        self.base = None
        super().append(keys, values)


@planted("GROW-05", breaks="RING-3 RING-18", anomaly="window-off-by-one")
class CapOfTheWindow(Ring):
    """The ring never holds more rows than the window: only the newest rows of a longer chunk are kept."""

    def _prefill(self, new: Pair) -> None:
        super()._prefill(new)
        self.rows.keep(max(0, len(self.rows) - self.window), len(self.rows))
        self.index = len(self.rows)

    @property
    def buffered(self) -> int:
        return len(self.rows) if self.offset > len(self.rows) else self.offset


@planted("LAYER-03", breaks="RING-1", anomaly="wrong-mask")
class FullLayer(Growing):
    """A layer with a window gets an ordinary growing cache, because the code that makes rings is never
    called."""

    kind = "ring"

    def __init__(self, config: Config) -> None:
        if config.window is None:
            raise common.config("CACHE-3", self.kind, config)
        super().__init__(config)
