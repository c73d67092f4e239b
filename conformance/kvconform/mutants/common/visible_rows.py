"""Common bugs: rows that a query should not see, or should."""

from __future__ import annotations

from kvconform.mutants.planting import planted
from kvref.ring import Ring
from kvspec.geometry import Config


@planted("window-off-by-one", breaks="RING-1 RING-17")
class RingOneWide(Ring):
    """The window is one row too wide."""

    def __init__(self, config: Config) -> None:
        wide = config.changed(window=config.window + 1) if config.window and config.window > 0 else config
        super().__init__(wide)


@planted("window-off-by-one", breaks="RING-1 RING-17")
class RingOneNarrow(Ring):
    """The window is one row too narrow."""

    def __init__(self, config: Config) -> None:
        narrow = config.changed(window=config.window - 1) if config.window and config.window > 1 else config
        super().__init__(narrow)
