"""What a captured step needs of a batch: where rows come from, where they go, how many there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from kvgpu.caches.attention import Pages, Positions, Runs
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.by_hand import ENTRY
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.layout import Geometry, Place, replace
from kvgpu.runtime import Block
from kvspec.geometry import DTYPES, Config


class Tables(NamedTuple):
    """`entries` are the block tables of all sequences on the device, i32, `wide` entries each. `following` is the
    page that each sequence begins next; the step that begins it writes it to the table."""

    entries: Block
    wide: int
    following: Block


class Batch(ABC):
    """Sequences that a step makes one row longer. `config` is of one layer's rows, and says `layers` and `max_len`.

    A step appends to pages: position p of a sequence goes to slot `p % slots` of page `table[p // slots]`, the same
    page in every layer. A sequence that grows in one piece has one page. One that slides in a window has one page
    too, which follows itself. Lengths are on the device, number `sequence * layers + layer`, and the host has a
    copy.
    """

    tables: Tables
    ends: Block
    """The lengths on the device, i64."""
    apart: int
    """Rows from page to page."""

    def __init__(self, space: Workspace, config: Config, taken: Place, sequences: int) -> None:
        assert config.layers is not None and config.max_len is not None
        self.space, self.config, self.layers, self.max_len = space, config, config.layers, config.max_len
        self.sequences = sequences
        self.rows = tuple(self._input(kind, taken) for kind in "kv")

    def _input(self, kind: str, taken: Place) -> DeviceRows:
        shape = self.layers, self.sequences, self.config.kv_heads, self.config.shape(kind, 1)[3]
        block, at = (taken.keys, taken.keys_at) if kind == "k" else (taken.values, taken.values_at)
        return DeviceRows(self.space.runtime, block, shape, DTYPES[self.config.dtype], at)

    def tabled(self, slots: int) -> Tables:
        """Make a table for each sequence, with the sequence's own number in every entry."""
        wide, runtime = -(-self.max_len // slots), self.space.runtime
        numbers = np.arange(self.sequences, dtype=ENTRY)
        tables = Tables(runtime.allocate(numbers.nbytes * wide), wide, runtime.allocate(numbers.nbytes))
        runtime.upload(np.repeat(numbers, wide), tables.entries)
        runtime.upload(numbers, tables.following)
        return tables

    def take(self, keys: Any, values: Any) -> None:
        """Copy rows `[layers, sequences, kv_heads, dim]` to where the step finds them."""
        whole = Geometry.of(self.config)
        geometry = Geometry(self.layers * self.sequences, whole.k_bytes, whole.v_bytes)
        self.space.staged(geometry, keys, values, block=self.rows[0].block)

    def positions(self, layer: int) -> Positions:
        """Give the ends of the sequences in a layer."""
        return Positions(lengths=self.ends, at=layer, stride=self.layers)

    @abstractmethod
    def place(self, layer: int) -> Place:
        """Give the first page of a layer."""

    @abstractmethod
    def lying(self, layer: int) -> Runs | Pages:
        """Say where the rows of a layer lie, for attention."""

    @abstractmethod
    def demand(self) -> None:
        """Refuse a batch that cannot take a step, and make room for a row of each sequence."""

    @abstractmethod
    def advance(self) -> None:
        """Advance every sequence's length on the host by one row."""


def behind(place: Place, geometry: Geometry, rows: int) -> Place:
    """Give the place that begins this many rows behind another, in the same blocks."""
    keys_at = place.keys_at + rows * geometry.k_bytes
    return replace(place, keys_at=keys_at, values_at=place.values_at + rows * geometry.v_bytes)
