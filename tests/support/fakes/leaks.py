"""Growing caches that are right and keep memory at each call of one method: `support.fakes.leaks:KeepsAtAppend`.

What they keep for good is touched, so that it is resident.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvref.caches.growing import Growing
from kvspec.geometry import Array
from kvworkshop.fakes import Fake

KEPT: list[Array] = []
"""What the caches of this process keep."""


def keep(mib: int) -> None:
    """Keep so many MiB."""
    KEPT.append(np.ones(mib << 17))


class KeepsAtAppend(Fake):
    """Keeps 8 MiB at each append."""

    class growing(Growing):
        def append(self, keys: Any, values: Any) -> None:
            keep(8)
            super().append(keys, values)


class KeepsAtRewind(Fake):
    """Keeps 24 MiB at each rewind, and nothing elsewhere."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            keep(24)
            super().rewind(to)


class KeepsALittle(Fake):
    """Keeps a quarter of a MiB at each append."""

    class growing(Growing):
        def append(self, keys: Any, values: Any) -> None:
            KEPT.append(np.ones(1 << 15))
            super().append(keys, values)


class KeepsWhatNoTraceHasRoomFor(Fake):
    """Keeps 400 MiB when it is freed, at once."""

    class growing(Growing):
        def free(self) -> None:
            keep(400)
            super().free()


class LosesARowAndKeeps(Fake):
    """Keeps 8 MiB at each append; a rewind takes one row more, which is wrong."""

    class growing(Growing):
        def append(self, keys: Any, values: Any) -> None:
            keep(8)
            super().append(keys, values)

        def rewind(self, to: int) -> None:
            super().rewind(max(0, to - 1))
