"""Fake adapters on top of the reference: each answers wrongly, as its docstring says.

Used as `support.fakes.adapters:NoopRewind`. The eight that guard the harness are in `kvworkshop.fakes`;
those that declare what others do not in `declarations.py`, those that do not answer in `endings.py`; the fakes of
the worker, without the reference, in `lies.py`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kvref.caches.growing import Growing
from kvspec.contract import Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvworkshop.fakes import Fake, one_row


class WrongShape(Fake):
    """Returns the history without its last head."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair if what != "history" or pair is None else Pair(*(a[:, :-1] for a in pair))


class WrongDtype(Fake):
    """Returns the history in single precision, whatever it was given."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair if what != "history" or pair is None else Pair(*(a.astype(np.float32) for a in pair))


class StateBackwards(Fake):
    """Stores the newest row first, and claims level storage."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair if what != "state" or pair is None else Pair(*(a[:, :, ::-1] for a in pair))


class SendsNaN(Fake):
    """Returns NaN for the newest row."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            return one_row(super().read(what), np.nan)


class SharedBetweenCaches(Fake):
    """All caches of a geometry write into the same buffer."""

    class growing(Growing):
        buffers: ClassVar[dict[Config, Pair]] = {}

        def _feed(self, new: Pair) -> None:
            first, config = self.offset, self.config.changed(step=1)
            super()._feed(new)
            whole = Pair(*(np.zeros(config.shape(kind, 600), a.dtype) for kind, a in zip("kv", new, strict=True)))
            for buffer, rows in zip(self.buffers.setdefault(config, whole), new, strict=True):
                buffer[:, :, first : self.offset] = rows

        def read(self, what: Readable) -> Pair | None:
            pair, shared = super().read(what), self.buffers.get(self.config.changed(step=1))
            return pair and Pair(*(a[:, :, : self.offset].copy() for a in shared or pair))


class NoopRewind(Fake):
    """Takes a rewind, and stays where it is."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            offset = self.offset
            super().rewind(to)
            self.offset = offset


class HalfRefusal(Fake):
    """Refuses a rewind beyond its end, after it has set the offset."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            wrong, offset = not 0 <= to <= self.offset, self.offset
            if wrong:
                self.offset = max(0, offset - 1)
                raise Refused("CACHE-7", "beyond the end")
            super().rewind(to)


class AcceptsAnyRewind(Fake):
    """Takes a rewind beyond its ends as one to the end nearer to it."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            super().rewind(min(max(to, 0), self.offset))


class WrongRefusalClause(Fake):
    """Refuses a rewind beyond its end, and names the clause about geometry."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            if not 0 <= to <= self.offset:
                raise Refused("CACHE-2", "beyond the end")
            super().rewind(to)


class CanRewindRewinds(Fake):
    """Rewinds when it is asked whether it could."""

    class growing(Growing):
        def can_rewind(self, to: int) -> bool:
            can = super().can_rewind(to)
            if can:
                self.offset = to
            return can


class RaisesKeyError(Fake):
    """Raises what is neither Refused nor Unsupported when it is freed."""

    class growing(Growing):
        def free(self) -> None:
            raise KeyError("slot 7")
