"""The layout of rows in device memory, and the one function that moves them: `move`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kvgpu.runtime import EACH, Block, Runtime, Work, prepared
from kvspec.geometry import DTYPES, Config, forms

ALIGNMENT = 16
"""Bytes of the largest word; keys and values begin at multiples of it in every block."""


def aligned(nbytes: int) -> int:
    """Round up to a multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Geometry:
    """The constants of a move: heads over the whole batch, bytes of a key row and of a value row."""

    heads: int
    k_bytes: int
    v_bytes: int

    @classmethod
    def of(cls, config: Config) -> Geometry:
        """Give the geometry of a cache's rows: of their bytes, where they are kept in a form."""
        heads, size, kept = config.batch * config.kv_heads, DTYPES[config.dtype].itemsize, forms(config)
        if kept is None:
            return cls(heads, config.k_dim * size, config.v_dim * size)
        return cls(
            heads, *(form.row_bytes(dim) for form, dim in zip(kept, (config.k_dim, config.v_dim), strict=True))
        )

    @cached_property
    def word(self) -> int:
        """Give the bytes of the largest word that divides every row."""
        return next(w for w in (16, 4, 2, 1) if self.k_bytes % w == self.v_bytes % w == 0)

    @cached_property
    def widths(self) -> tuple[int, int]:
        """Give the words of a key row and of a value row."""
        return self.k_bytes // self.word, self.v_bytes // self.word

    @cached_property
    def mover(self) -> str:
        """Name the kernel that moves words of this size."""
        return f"move{self.word}"

    @cached_property
    def row_bytes(self) -> int:
        """Give the bytes of one position: its key and value rows over all heads."""
        return self.heads * (self.k_bytes + self.v_bytes)

    def packed(self, rows: int) -> tuple[int, int]:
        """Give, for rows packed into one block, the byte at which values begin, and the total bytes."""
        values = aligned(self.heads * rows * self.k_bytes)
        return values, values + self.heads * rows * self.v_bytes


class Place(NamedTuple):
    """Slots on the device: keys of head h, slot s begin at byte `keys_at + (h * slots + s) * k_bytes` of `keys`."""

    keys: Block
    values: Block
    keys_at: int
    values_at: int
    slots: int

    @classmethod
    def packed(cls, block: Block, geometry: Geometry, rows: int) -> Place:
        """Give the place of keys, then values, at the beginning of one block."""
        return cls(block, block, 0, geometry.packed(rows)[0], rows)

    def span(self, first: int = 0, turn: int = 0, wrap: int | None = None) -> Span:
        """Give the `wrap` slots from `first` on (all up to the end), read from the `turn`th of them on."""
        return Span(self, first, turn, self.slots - first if wrap is None else wrap)


def replace(place: Place, keys_at: int, values_at: int) -> Place:
    """Give as many slots of the same blocks, which begin at these bytes."""
    return Place(place.keys, place.values, keys_at, values_at, place.slots)


def behind(place: Place, geometry: Geometry, slot: int) -> Place:
    """Give the place whose first slot is this one of another; only as many as the other has behind it exist."""
    return replace(place, place.keys_at + slot * geometry.k_bytes, place.values_at + slot * geometry.v_bytes)


class Span(NamedTuple):
    """Slots used as a ring: row t is in slot `first + (turn + t) mod wrap`, where `turn < wrap`."""

    place: Place
    first: int
    turn: int
    wrap: int

    def straight(self, rows: int) -> bool:
        """Tell whether this many rows are contiguous."""
        return self.turn + rows <= self.wrap

    def holds(self, rows: int) -> bool:
        """Tell whether it is within its place and has room for this many rows."""
        inside = self.first >= 0 and self.first + self.wrap <= self.place.slots
        return inside and 0 <= self.turn < self.wrap and rows <= self.wrap

    def arguments(self, geometry: Geometry) -> tuple[int, ...]:
        """Give the kernel's arguments: the slots, and where keys and values begin in their blocks, in words."""
        keys = self.place.keys_at + self.first * geometry.k_bytes
        values = self.place.values_at + self.first * geometry.v_bytes
        word = geometry.word
        return keys // word, values // word, self.place.slots


def move(runtime: Runtime, geometry: Geometry, rows: int, source: Span, target: Span) -> None:
    """Copy rows on the device, keys and values in one launch, to the beginning of a target that has no turn. Source
    and target must not overlap."""
    if rows == 0:
        return
    fit = source.holds(rows) and target.holds(rows) and target.turn == 0
    assert fit, f"{rows} rows from {source} to {target}"
    ends = (*source.arguments(geometry), source.turn, source.wrap, *target.arguments(geometry))
    _launch(runtime, geometry, rows, source.place, target.place, ends)


def put(runtime: Runtime, geometry: Geometry, rows: int, source: Place, target: Place, at: int) -> None:
    """Copy the first rows of a place, at least one, to the slots of another from `at` on: a `move` that takes less
    time to call."""
    word = geometry.word
    assert rows <= source.slots and 0 <= at <= target.slots - rows, f"{rows} rows of {source} to {at} in {target}"
    begin = source.keys_at // word, source.values_at // word, source.slots, 0, rows
    keys, values = target.keys_at + at * geometry.k_bytes, target.values_at + at * geometry.v_bytes
    _launch(runtime, geometry, rows, source, target, (*begin, keys // word, values // word, target.slots))


def writer(runtime: Runtime, geometry: Geometry, target: Place) -> Callable[[Place, int], None]:
    """Give a `put` of one packed row to a slot of a target, prepared because it is called for every token."""
    (keys, values), word, meter = geometry.widths, geometry.word, runtime.meter
    keys_at, values_at, slots = target.keys_at // word, target.values_at // word, target.slots
    numbers = 2, geometry.heads, 1, keys, values, EACH, EACH, 1, 0, 1, EACH, EACH, slots
    start = prepared(
        runtime, geometry.mover, Work(max(keys, values), 1, geometry.heads, 2), numbers, (5, 6, 10, 11)
    )

    def write(source: Place, at: int) -> None:
        assert source.slots == 1 and 0 <= at < slots, f"a row of {source} to {at} in {target}"
        begin = source.keys_at // word, source.values_at // word
        start(
            source.keys,
            source.values,
            target.keys,
            target.values,
            *begin,
            keys_at + at * keys,
            values_at + at * values,
        )
        meter.device_to_device += geometry.row_bytes

    return write


def _launch(
    runtime: Runtime, geometry: Geometry, rows: int, source: Place, target: Place, ends: tuple[int, ...]
) -> None:
    heads, (keys, values) = geometry.heads, geometry.widths
    work = Work(keys if keys > values else values, rows, heads, 2)
    blocks = source.keys, source.values, target.keys, target.values
    runtime.launch(geometry.mover, work, *blocks, 2, heads, rows, keys, values, *ends)
    runtime.meter.device_to_device += rows * geometry.row_bytes
