"""Adapters that answer with what is not so, or with what is odd and yet right."""

from __future__ import annotations

from typing import Any, ClassVar
from unittest.mock import MagicMock

import numpy as np

from kvref.caches.growing import Growing
from kvspec.contract import Cache, Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvworkshop.fakes import Fake


class Agreeable(np.ndarray):
    """An array that says it equals whatever it is compared with."""

    def __eq__(self, other: object) -> Any:
        return True

    def tobytes(self, order: Any = "C") -> bytes:
        raise AssertionError("nobody asks an array for its own opinion")


class AgreesWithAll(Fake):
    """Returns zeros in an array that says it equals everything."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and Pair(*(np.zeros_like(a).view(Agreeable) for a in pair))


class Number(int):
    """A number that says it equals every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class OffsetAgreesWithAll(Fake):
    """Its offset is 99, and says it equals everything."""

    class growing(Growing):
        def lengths(self) -> Lengths:
            return super().lengths()._replace(offset=Number(99))


class OffsetIsAnObject(Fake):
    """Its offset is an object that can be an index."""

    class growing(Growing):
        def lengths(self) -> Any:
            return super().lengths()._replace(offset=type("Index", (), {"__index__": lambda self: 1})())


class Strided(Fake):
    """No lie: it returns arrays that lie in memory in another order, backwards."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(np.array(a[..., ::-1].T).T[..., ::-1] for a in pair))


class ReadOnly(Fake):
    """No lie: it returns arrays that cannot be written."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a in pair or ():
                a.setflags(write=False)
            return pair


class Masked(Fake):
    """Returns masked arrays, which hide that the newest row is wrong."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and Pair(*(np.ma.masked_array(a * 0, mask=True) for a in pair))


class BigEndian(Fake):
    """Returns rows of the other byte order."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a.astype(a.dtype.newbyteorder(">")) for a in pair))


class Objects(Fake):
    """Returns arrays of Python's numbers."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a.astype(object) for a in pair))


class Lists(Fake):
    """Returns lists of lists."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and [a.tolist() for a in pair]


class Generates(Fake):
    """Returns a generator of keys, and of values without end."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and (a for a in (pair.keys, *[pair.values] * 1000))


class KeysAlone(Fake):
    """Returns keys and no values."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and (pair.keys, None)


class Swapped(Fake):
    """Returns values in the place of keys."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(pair.values, pair.keys)


class Scalars(Fake):
    """Returns arrays without axes."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            return Pair(np.zeros((), np.float16), np.zeros((), np.float16))


class Live(Fake):
    """Returns its own storage, on which the caller scribbles."""

    class growing(Growing):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.lent: dict[str, Pair | None] = {}

        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            old = self.lent.get(what)
            same = pair and old and pair.keys.shape == old.keys.shape
            self.lent[what] = old if same else pair
            return self.lent[what]


class Keeps(Fake):
    """Keeps the caller's first arrays, on which the caller scribbles."""

    class growing(Growing):
        first: Pair | None = None

        def append(self, keys: Array, values: Array) -> None:
            super().append(keys, values)
            self.first = self.first or Pair(keys, values)

        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a, kept in zip(pair or (), self.first or (), strict=False):
                a[:, :, : kept.shape[2]] = kept
            return pair


class ChangesWhenRead(Fake):
    """Forgets a row when its view is read."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            if what == "view":
                self.offset = max(0, self.offset - 1)
            return pair


class TiresAtRow100(Fake):
    """Writes no row behind the hundredth."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a in pair or ():
                a[:, :, 100:] = 0
            return pair


class WrongInHead1(Fake):
    """Copies head 0 into head 1."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a in pair or ():
                a[:, 1:2] = a[:, :1]
            return pair


class WrongFromTheSecondCacheOn(Fake):
    """Is right in the first cache that it opens; in later ones it loses a row."""

    opened: ClassVar[int] = 0

    def open(self, kind: str, config: Config) -> Cache:
        type(self).opened += 1
        cache: Any = super().open(kind, config)
        if self.opened > 1:
            cache.read = lambda what: None
        return cache  # type: ignore[no-any-return]


class ZeroRowsAreARow(Fake):
    """Counts an append of no rows as one."""

    class growing(Growing):
        def lengths(self) -> Lengths:
            found = super().lengths()
            return found._replace(offset=found.offset + self.none)

        none = 0

        def append(self, keys: Array, values: Array) -> None:
            super().append(keys, values)
            self.none += keys.shape[2] == 0


class MaybeRewinds(Fake):
    """Says "no" when asked whether it could rewind, which is true."""

    class growing(Growing):
        def can_rewind(self, to: int) -> Any:
            return "no"


class Mocks(Fake):
    """Opens a mock, which answers whatever it is asked."""

    def open(self, kind: str, config: Config) -> Any:
        return MagicMock()
