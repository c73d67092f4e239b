"""Rows that the host writes itself, where they lie in the device's memory: shorter than any launch."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy import ndarray

from kvgpu.memory.layout import Geometry, Place
from kvgpu.runtime import Block, Reaching, Runtime
from kvspec.geometry import Array

MOST = 1 << 18
"""Bytes that one thread writes in less time than it takes to wake the others."""

MOST_STEP = 1 << 20
"""The same of a step of a batch, whose kernel takes longer: its rows lie far from each other."""

ENTRY = np.dtype(np.int32)
"""An entry of a block table on the device."""

LENGTH = np.dtype(np.int64)
"""A length on the device."""


class Hand:
    """Reaches the blocks of a runtime. Each method of a subclass tells whether the host did the work, which it does
    while the device rests and the rows are few; if not, the caller launches a kernel.

    Heads are counted as in a place's geometry: head h begins `h * slots` rows behind the first one. A row is one
    element, of bytes without a meaning."""

    def __init__(self, runtime: Runtime, geometry: Geometry, place: Place) -> None:
        self._place, self._heads, self._meter = place, geometry.heads, runtime.meter
        self._k_bytes, self._v_bytes = geometry.k_bytes, geometry.v_bytes
        self._key, self._value = (np.dtype(f"V{size}") for size in (geometry.k_bytes, geometry.v_bytes))
        self._each = geometry.k_bytes + geometry.v_bytes
        self._most = MOST // self._each
        self._reaching = runtime if isinstance(runtime, Reaching) else Never()
        self._resting = self._reaching.resting
        self._pairs = place.keys is place.values and geometry.k_bytes == geometry.v_bytes

    def _reached(self, block: Block) -> Array:
        """Give the bytes of a block where they lie, `[nbytes]`, u8."""
        if block.reached is None:
            assert block.handle is not None, "a block that was released is written or read"
            block.reached = self._reaching.reach(block)
        return block.reached

    def _numbers(self, dtype: np.dtype[np.signedinteger], block: Block) -> Array:
        """Give the numbers of a block where they lie; all are of one dtype."""
        if block.numbers is None:
            block.numbers = self._reached(block).view(dtype)
        return block.numbers


class ByHand(Hand):
    """The slots of a place, while its blocks are allocated."""

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        """Give keys and values where they lie, `[slots, heads]`."""
        place, shape = self._place, (self._heads, self._place.slots)
        keys = ndarray(shape, self._key, self._reached(place.keys), place.keys_at)
        values = ndarray(shape, self._value, self._reached(place.values), place.values_at)
        return keys.T, values.T

    @cached_property
    def _rows_of_pairs(self) -> Array:
        """Give keys and values where they lie, `[slots, 2, heads]`, if they are of one width."""
        place, apart = self._place, self._place.values_at - self._place.keys_at
        strides = self._k_bytes, apart, place.slots * self._k_bytes
        shape = place.slots, 2, self._heads
        return ndarray(shape, self._key, self._reached(place.keys), place.keys_at, strides)

    def put(self, source: Place, slot: int, first: int, heads: int) -> bool:
        """Write a packed row of some heads to a slot of as many heads, from the `first` on."""
        if heads > self._most or not self._resting():
            return False
        k, v, keys_at, values_at, _ = source
        assert self._place.keys.handle is not None and slot >= 0, f"slot {slot} of {self._place}"
        self._meter.device_to_device += heads * self._each
        if not self._pairs or k is not v:
            self._put_apart(source, slot, first, heads)
            return True
        there = self._reached(k) if k.reached is None else k.reached
        row = ndarray((2, heads), self._key, there, keys_at, (values_at - keys_at, self._k_bytes))
        if heads == self._heads:
            self._rows_of_pairs[slot] = row
        else:
            self._rows_of_pairs[slot, :, first : first + heads] = row
        return True

    def _put_apart(self, source: Place, slot: int, first: int, heads: int) -> None:
        """Write keys, then values."""
        k, v, keys_at, values_at, _ = source
        keys, values, end = *self._rows, first + heads
        keys[slot, first:end] = ndarray(heads, self._key, self._reached(k), keys_at)
        values[slot, first:end] = ndarray(heads, self._value, self._reached(v), values_at)

    def put_behind(self, lengths: Block, first: int, groups: int, source: Place, heads: int) -> bool:
        """Write a packed row of each of some groups of heads behind their length, and advance that, where it is the
        same for all."""
        if not self._resting():
            return False
        held = self._numbers(LENGTH, lengths)[first : first + groups]
        slots = held.tolist()
        if slots.count(slots[0]) != groups or not self.put(source, slots[0], first * heads, groups * heads):
            return False
        held += 1
        return True

    def put_step(self, lengths: Block, ends: Array, layers: int, source: Place) -> bool:
        """Write a packed row of each sequence of a batch behind its end in each layer, and advance the lengths. The
        sequences of a layer have places beside each other."""
        sequences, places = len(ends), lengths.nbytes // LENGTH.itemsize // layers
        heads = self._heads // (layers * places)
        if layers * sequences * heads * self._each > MOST_STEP or not self._resting():
            return False
        assert self._place.keys.handle is not None, f"{self._place} was released"
        parts = (source.keys, source.keys_at), (source.values, source.values_at)
        for rows, (block, at) in zip(self._rows, parts, strict=True):
            there = rows.reshape(len(rows), layers, places, heads)[:, :, :sequences]
            _put_behind(there, ends, ndarray((layers, sequences, heads), rows.dtype, self._reached(block), at))
        self._numbers(LENGTH, lengths)[: sequences * layers] += 1
        self._meter.device_to_device += layers * sequences * heads * self._each
        return True


def _put_behind(rows: Array, ends: Array, new: Array) -> None:
    """Write new rows `[layers, sequences, heads]` to the slots at the ends, at once where these are alike."""
    if (ends == ends[0]).all():
        rows[ends[0]] = new
        return
    for sequence, end in enumerate(ends):
        rows[end, :, sequence] = new[:, sequence]


class Never:
    """Stands for a runtime whose device has memory of its own."""

    def resting(self) -> bool:
        """Tell that the host may not write."""
        return False

    def reach(self, block: Block) -> Array:
        """Raise RuntimeError."""
        raise RuntimeError("the host does not reach the memory of this device")
