"""Caches whose rows are strided views of memory in another order: as columns, or from the end backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvref.caches.bounded import Bounded
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvref.caches.sink import Sink
from kvref.caches.store import Store
from kvref.memory import meter
from kvref.memory.rows import Rows
from kvspec.geometry import Array, Config
from kvworkshop.correct_variants.variant import Variant

Allocate = Callable[[tuple[int, ...], np.dtype[Any]], Array]
Arrange = Callable[[Allocate, tuple[int, ...], np.dtype[Any]], Array]
"""Gives new memory as slots `[..., slots, dim]`, however they lie in it."""


def columns(allocate: Allocate, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory `[..., dim, slots]`: each row is a column of it."""
    *outer, slots, dim = shape
    return allocate((*outer, dim, slots), dtype).swapaxes(-1, -2)


def backwards(allocate: Allocate, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory `[..., slots, dim]` whose last slot is slot 0, so that it fills from its end."""
    return allocate(shape, dtype)[..., ::-1, :]


class Strided(Rows):
    """Rows in memory that is arranged otherwise."""

    def __init__(self, config: Config, arrange: Arrange) -> None:
        super().__init__(config)
        self.arrange = arrange

    def turn(self, first: int) -> None:
        """Renumber the slots so that slot `first` becomes slot 0."""
        order = [*range(first, len(self)), *range(first)]
        self.keys, self.values = (self._arranged(len(self), a[:, :, order]) for a in (self.keys, self.values))

    def taken(self, slots: list[int]) -> Rows:
        """The rows in these slots, in this order, as storage of their own."""
        made = Strided(self.config, self.arrange)
        made.keys, made.values = (self._arranged(len(slots), a[:, :, slots]) for a in (self.keys, self.values))
        return made

    def _replace(self, slots: int, start: int, stop: int) -> None:
        old = self.keys, self.values
        self.keys, self.values = (self._arranged(slots, a[:, :, start:stop]) for a in old)

    def _arranged(self, slots: int, rows: Array) -> Array:
        """New memory of this many slots, with these rows first."""
        batch, heads, n, dim = rows.shape
        new = self.arrange(meter.allocated, (batch, heads, slots, dim), rows.dtype)
        meter.write(new[:, :, :n], meter.resident(rows))
        return new


class Arranged:
    """Mixin of kinds that hold rows: what is empty and new in them is arranged otherwise."""

    arrange: ClassVar[Arrange]
    config: Config

    @property
    def rows(self) -> Rows:
        """The rows held."""
        return self._rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        assert isinstance(rows, Strided) or len(rows) == 0
        self._rows = rows if isinstance(rows, Strided) else Strided(self.config, type(self).arrange)


class StridedStore(Arranged, Store):
    """A store each of whose arrays is arranged otherwise."""

    def _zeros(self, layers: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> list[Array]:
        """Each in memory of its own."""
        return [type(self).arrange(meter.zeros, shape, dtype) for _ in range(layers)]


def _caches(arrange: Arrange) -> dict[str, Any]:
    """All kinds of the reference, those that hold rows by position arranged otherwise."""
    bases = [(Arranged, Growing), (Arranged, Ring), (Arranged, Bounded), (Arranged, Sink), (StridedStore,)]
    kinds: list[Any] = [type(b[-1].__name__, b, {"arrange": staticmethod(arrange)}) for b in bases]
    return {**Reference.caches, **{kind.kind: kind for kind in kinds}}


class Transposed(Variant):
    """Caches that keep each row as a column, the dim outside and the slots inside."""

    caches: ClassVar[dict[str, Any]] = _caches(columns)


class FromTheEnd(Variant):
    """Caches that fill their memory from its end, so that the newest row is in front. Growth adds memory there."""

    caches: ClassVar[dict[str, Any]] = _caches(backwards)
