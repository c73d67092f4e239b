"""Fake adapters on top of the reference: each answers wrongly, as its docstring says.

Used as `fake_adapters:NoopRewind`. Those that declare what others do not are in `fake_declarations.py`, those that
do not answer in `fake_endings.py`; the fakes of the worker, without the reference, are in `fakes.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.contract import Cache, Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import CACHES, Array, Config

OF_THE_ADAPTER = {"draft": ("speculate",), "mem": ("fit",), "residency": ("meter", "place"), "rope": ("rotate",)}
OF_A_CACHE = {
    "mask": ("mask",),
    "snapshot": ("snapshot", "restore", "merge", "split"),
    "mem": ("plan", "held"),
    "attention": ("attend",),
}


class Fake(Reference):
    """The reference's growing cache under another name; fakes have caches of their own, and say `more`."""

    growing: ClassVar[Any] = Growing
    ring: ClassVar[Any] = Ring
    profiles: ClassVar[dict[str, Any]] = {"growing": {"level": "storage", "grows": "step"}}
    more: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for profile, methods in OF_THE_ADAPTER.items():
            for method in () if profile in self.profiles else methods:
                setattr(self, method, None)  # what is not declared is not offered

    def describe(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "profiles": self.profiles, **self.more}

    @property
    def caches(self) -> dict[str, Any]:  # type: ignore[override]
        return {p: getattr(self, p) for p in CACHES if p in self.profiles}

    def open(self, profile: str, config: Config) -> Cache:
        cache: Any = super().open(profile, config)
        for name, methods in OF_A_CACHE.items():
            for method in () if name in self.profiles else methods:
                setattr(cache, method, None)
        return cache  # type: ignore[no-any-return]


def one_row(pair: Pair | None, value: float) -> Pair | None:
    """The pair with its last key row overwritten."""
    if pair is not None and pair.keys.shape[2]:
        pair.keys[:, :, -1] = value
    return pair


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


class SendsNaN(Fake):
    """Returns NaN for the newest row."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            return one_row(super().read(what), np.nan)


class Nondeterministic(Fake):
    """Wrong at every 37th read."""

    class growing(Growing):
        reads: ClassVar[list[int]] = [0]

        def read(self, what: Readable) -> Pair | None:
            self.reads[0] += 1
            pair = super().read(what)
            return one_row(pair, 3.0) if self.reads[0] % 37 == 0 else pair


class RightTheFirstTimeOnly(Fake):
    """Its first cache is right, and all that come after lose the last row."""

    opened: ClassVar[list[int]] = [0]

    def open(self, profile: str, config: Config) -> Cache:
        self.opened[0] += 1
        cache: Any = super().open(profile, config)
        if self.opened[0] > 1:
            read = cache.read
            cache.read = lambda what: one_row(read(what), 1.0)
        return cache  # type: ignore[no-any-return]


class KeepsCallersArrays(Fake):
    """Keeps the arrays it was handed where they are all it holds, instead of copies."""

    class growing(Growing):
        def _feed(self, new: Pair) -> None:
            first = self.offset == 0
            super()._feed(new)
            if first:
                self.rows.keys, self.rows.values = new

    profiles: ClassVar[dict[str, Any]] = {"growing": "storage"}


class ReturnsLiveViews(Fake):
    """Hands out its own storage."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            if what != "history" and not self.written:
                return None
            return Pair(self.rows.keys[:, :, : self.offset], self.rows.values[:, :, : self.offset])


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


class RefusesEverything(Fake):
    """Refuses to append anything at all."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            raise Refused("", "not today")


class ReturnsConstants(Fake):
    """Returns rows of the right shape that are all ones."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(np.ones_like(a) for a in pair))


class DoesNothing(Fake):
    """Takes everything, and holds nothing."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            pass


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
                raise Refused("GROW-7", "beyond the end")
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
                raise Refused("GROW-10", "beyond the end")
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
