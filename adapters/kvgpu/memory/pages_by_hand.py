"""Pages, and block tables, that the host writes itself where they lie in the device's memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from numpy import dtype, ndarray

from kvgpu.memory.by_hand import ENTRY, Hand
from kvgpu.memory.layout import Geometry, Place
from kvgpu.runtime import Block, Runtime
from kvspec.geometry import Array


class PagesByHand(Hand):
    """A pool of pages, while its block is allocated. The place has a page's slots, and the geometry is a page's."""

    def __init__(self, runtime: Runtime, geometry: Geometry, place: Place, pages: int) -> None:
        super().__init__(runtime, geometry, place)
        self._pages, self._row_bytes, self._slots = pages, geometry.row_bytes, place.slots
        self._few = geometry.heads <= self._most

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        """Give keys and values where they lie, `[pages, slots, heads]`."""
        place = self._place
        keys = self._row_by_row(place.keys, place.keys_at, self._key)
        return keys, self._row_by_row(place.values, place.values_at, self._value)

    def _row_by_row(self, block: Block, at: int, row: dtype[Any]) -> Array:
        """Give keys or values; rows of a latent form have values of no bytes."""
        line = self._slots * row.itemsize
        strides = self._heads * line, row.itemsize, line
        return ndarray((self._pages, self._slots, self._heads), row, self._reached(block), at, strides)

    @cached_property
    def _rows_of_pairs(self) -> Array:
        """Give keys and values where they lie, `[pages, slots, 2, heads]`, if they are of one width."""
        place, row = self._place, self._k_bytes
        line = self._slots * row
        strides = self._heads * line, row, place.values_at - place.keys_at, line
        shape = self._pages, self._slots, 2, self._heads
        return ndarray(shape, self._key, self._reached(place.keys), place.keys_at, strides)

    @cached_property
    def _lines(self) -> tuple[Array, Array]:
        """Give the bytes of keys and of values where they lie, `[pages, heads, bytes of all slots]`."""
        place, shape = self._place, (self._pages, self._heads)
        keys = ndarray((*shape, self._slots * self._k_bytes), "u1", self._reached(place.keys), place.keys_at)
        values = ndarray((*shape, self._slots * self._v_bytes), "u1", self._reached(place.values), place.values_at)
        return keys, values

    def put(self, table: Block, position: int, source: Place) -> bool:
        """Write a packed row to where a block table says that a position lies."""
        if not self._few or not self._resting():
            return False
        k, v, keys_at, values_at, _ = source
        assert self._place.keys.handle is not None and position >= 0, f"position {position} of {self._place}"
        entry, slot = divmod(position, self._slots)
        page = self._numbers(ENTRY, table).item(entry)
        if self._pairs and k is v:
            strides = values_at - keys_at, self._k_bytes
            there = self._reached(k) if k.reached is None else k.reached
            self._rows_of_pairs[page, slot] = ndarray((2, self._heads), self._key, there, keys_at, strides)
        else:
            keys, values = self._rows
            keys[page, slot] = ndarray(self._heads, self._key, self._reached(k), keys_at)
            values[page, slot] = ndarray(self._heads, self._value, self._reached(v), values_at)
        self._meter.device_to_device += self._row_bytes
        return True

    def copy(self, page: int, to: int, rows: int) -> bool:
        """Copy the first rows of a page to another one."""
        if self._heads * rows > self._most or not self._resting():
            return False
        assert self._place.keys.handle is not None, f"{self._place} was released"
        keys, values = self._lines
        end = rows * self._k_bytes
        keys[to, :, :end] = keys[page, :, :end]
        end = rows * self._v_bytes
        values[to, :, :end] = values[page, :, :end]
        self._meter.device_to_device += rows * self._row_bytes
        return True

    def number(self, table: Block, first: int, pages: Sequence[int]) -> bool:
        """Write entries of a block table, from `first` on."""
        if not self._resting():
            return False
        entries = self._numbers(ENTRY, table)
        if len(pages) == 1:
            entries[first] = pages[0]
        else:
            entries[first : first + len(pages)] = pages
        return True

    def follow(self, table: Block, other: Block, count: int) -> bool:
        """Write the first entries of another block table to a table."""
        if not self._resting():
            return False
        self._numbers(ENTRY, table)[:count] = self._numbers(ENTRY, other)[:count]
        return True
