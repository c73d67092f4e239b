"""The storage axis of a cache: key and value rows side by side, so that no step can move one without the other.

Rows in a form are bytes: codes, and the scales that they were made with behind them. They are encoded where
they are written and decoded where they are read; all that copies, moves or keeps rows does so with the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvref.memory import forms, meter
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


class Rows:
    """Allocated slots of keys `[B, H, S, k_dim]` and values `[B, H, S, v_dim]`; slot s of both is one position. In
    a form the last axis is that of the bytes of a row.

    Whatever changes the number of slots takes new memory and gives the old back.
    """

    def __init__(self, config: Config) -> None:
        self.config, self.kept = config, forms.Kept(config)
        self.keys, self.values = self.kept.none()

    def __len__(self) -> int:
        return int(self.keys.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        self.kept.cite_bytes()
        return self.keys.nbytes + self.values.nbytes

    def write(self, slot: int, new: Pair) -> None:
        """Put new rows into the slots from `slot` on."""
        end = slot + new.keys.shape[2]
        codes = self.kept.encoded(new)
        meter.write(self.keys[:, :, slot:end], codes.keys)
        meter.write(self.values[:, :, slot:end], codes.values)

    def keep(self, start: int, stop: int) -> None:
        """Cut down to the slots start..stop-1."""
        if (start, stop) != (0, len(self)):
            self._replace(stop - start, start, stop)

    def grow(self, slots: int, live: int) -> None:
        """New rows with this many slots; the first `live` slots are copied."""
        self._replace(slots, 0, live)

    def join(self, new: Pair, start: int = 0) -> None:
        """The slots from `start` on, with rows added behind the last."""
        end = len(self)
        self._replace(end - start + count(new), start, end)
        self.write(end - start, new)

    def turn(self, first: int) -> None:
        """Renumber the slots so that slot `first` becomes slot 0."""
        self.keys, self.values = (_turned(a, first) for a in (self.keys, self.values))

    def copy(self, start: int, stop: int) -> Pair:
        """Copies of the rows in slots start..stop-1, on the device."""
        return Pair(*(meter.moved(a[:, :, start:stop]) for a in (self.keys, self.values)))

    def part(self, start: int, stop: int) -> Pair:
        """The rows in slots start..stop-1 without a copy, to be written elsewhere."""
        return Pair(*(meter.resident(a[:, :, start:stop]) for a in (self.keys, self.values)))

    def chosen(self, slots: list[int]) -> Pair:
        """The rows in these slots, in this order, to be written elsewhere."""
        return Pair(*(meter.resident(a[:, :, slots]) for a in (self.keys, self.values)))

    def read(self, start: int, stop: int) -> Pair:
        """Copies of the rows in slots start..stop-1, on the host, as they are read."""
        return self.gather(slice(start, stop))

    def gather(self, slots: list[int] | slice) -> Pair:
        """Copies of the rows in these slots, in this order, on the host, as they are read."""
        return Pair(*(meter.fetched(a) for a in self.shown(slots)))

    def shown(self, slots: list[int] | slice) -> Pair:
        """The rows in these slots, in this order, as they are read, on the device."""
        return self.kept.decoded(Pair(self.keys[:, :, slots], self.values[:, :, slots]))

    def taken(self, slots: list[int]) -> Rows:
        """The rows in these slots, in this order, as storage of their own."""
        made = Rows(self.config)
        made.keys, made.values = (np.asarray(meter.moved(a[:, :, slots])) for a in (self.keys, self.values))
        return made

    def _replace(self, slots: int, start: int, stop: int) -> None:
        self.keys, self.values = (_replaced(a, slots, start, stop) for a in (self.keys, self.values))


def _replaced(old: Array, slots: int, start: int, stop: int) -> Array:
    """New memory of this many slots, with the old slots start..stop-1 first."""
    batch, heads, _, dim = old.shape
    new = meter.allocated((batch, heads, slots, dim), old.dtype)
    meter.write(new[:, :, : stop - start], meter.resident(old[:, :, start:stop]))
    return new


def _turned(old: Array, first: int) -> Array:
    return np.asarray(np.roll(meter.moved(old), -first, axis=2)).view(np.ndarray)


def count(pair: Pair) -> int:
    """Positions a pair holds."""
    return int(pair.keys.shape[2])


def joined(*each: Pair) -> Pair:
    """The rows of one pair behind those of another, in new memory."""
    axes: Any = zip(*each, strict=True)
    return Pair(*map(_joined, axes))


def _joined(arrays: Sequence[Array]) -> Array:
    return meter.moved(np.concatenate(arrays, axis=2))
