"""Common bugs: rows that a query should not see, or should."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.common.caches import Masking
from kvconform.mutants.planting import planted
from kvref.ring import Ring
from kvspec.geometry import Config
from kvspec.masks import Causal, Explicit, Logical, Window


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


@planted("window-off-by-one", breaks="MASK-4")
class MaskOneWide(Masking):
    """A window mask shows one row too many."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Window(p.size + 1) if isinstance(p, Window) else p for p in logical)


@planted("window-off-by-one", breaks="MASK-4")
class MaskOneNarrow(Masking):
    """A window mask shows one row too few."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(Window(p.size - 1) if isinstance(p, Window) and p.size > 1 else p for p in logical)


@planted("logical-order-mask", breaks="MASK-2")
class UpperLeft(Masking):
    """The causal mask is aligned at the upper left: the first query sees only the first key, whatever the
    past."""

    def meant(self, logical: Logical) -> Logical:
        if self.queries is None or self.queries < 2:
            return logical
        corner = Explicit(np.tril(np.ones((1, 1, self.queries, self.lengths().buffered or 0), np.bool_)))
        return tuple(corner if isinstance(p, Causal) else p for p in logical)


@planted("wrong-mask", breaks="MASK-2")
class SeesTheFuture(Masking):
    """The causal mask hides nothing."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(p for p in logical if not isinstance(p, Causal))


@planted("wrong-mask", breaks="MASK-5")
class Inverted(Masking):
    """True hides in a boolean mask."""

    def meant(self, logical: Logical) -> Logical:
        return tuple(
            Explicit(~p.array) if isinstance(p, Explicit) and p.array.dtype == bool else p for p in logical
        )
