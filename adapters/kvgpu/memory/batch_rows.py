"""The device memory of a batch: places for sequences, and their lengths on device and host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kvgpu.memory import device_arrays as resident
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.layout import Geometry, Place
from kvgpu.memory.row_groups import MOST_PARTS, Layers
from kvgpu.runtime import Work
from kvspec.geometry import Array, Config


class Sequences:
    """Memory for `places` sequences, group `l * places + s` of `memory` being sequence s in layer l; the first m of
    them are in use. How many rows each layer holds of each sequence, `[m, layers]`, the device knows, and the host
    as `held`.

    `input` is where the rows of a step come from, at one address for as long as the memory lives. Call `begin`
    first.
    """

    lengths: Array
    held: Array

    def __init__(self, space: Workspace, config: Config, places: int) -> None:
        assert config.layers is not None
        self.space, self.config, self.layers, self.places = space, config, config.layers, places
        self.memory = Layers(space, config, config.layers * places)
        self.input = space.runtime.allocate(self._geometry(places).packed(config.kv_heads)[1])

    def _geometry(self, m: int) -> Geometry:
        """Of the rows of a step, `[layers, m, kv_heads, dim]`: lines of kv_heads rows."""
        whole = self.memory.geometry
        return Geometry(self.layers * m, whole.k_bytes, whole.v_bytes)

    def release(self) -> None:
        """Give all memory back."""
        self.memory.release()
        self.input.release()

    def begin(self, m: int) -> None:
        """Begin with m empty sequences; one launch."""
        self.memory.bound(0, self.memory.groups, high=0)
        self.lengths = np.zeros(m, np.int64)
        self.held = np.zeros((m, self.layers), np.int64)

    def lower(self, sequence: int, to: int) -> None:
        """Keep at most `to` rows of a sequence, in every layer; one launch."""
        self.memory.bound(sequence * self.layers, self.layers, high=to)
        self.lengths[sequence] = min(to, self.lengths[sequence])
        np.minimum(self.held[sequence], to, out=self.held[sequence])

    def scatter(self, source: Layers, sequence: int, n: int, first: int, layers: int) -> None:
        """Copy the first n rows of some layers to a sequence's place; one launch."""
        heads, rows, word = self.config.kv_heads, source.rows.slots, source.geometry.word
        widths = source.geometry.k_bytes // word, source.geometry.v_bytes // word
        stride, places = heads * rows, self.memory.rows.place
        ends = (
            *self._end(source.rows.place, first * stride, stride),
            *self._end(places, (first * self.places + sequence) * stride, self.places * stride),
        )
        sizes = layers, heads, n, *widths
        where = *ends, rows, sequence * self.layers, self.layers, first
        shape = Work(max(widths), max(1, n), layers, min(2 * heads, MOST_PARTS))
        self._launch(f"scatter{word}", shape, source.rows.place, *sizes, *where)
        self.space.runtime.meter.device_to_device += layers * n * self.config.row_bytes
        self.lengths[sequence] = n
        np.minimum(self.held[sequence], n, out=self.held[sequence])
        self.held[sequence, first : first + layers] = n

    def _end(self, place: Place, row: int, stride: int) -> tuple[int, int, int]:
        """Where keys and values begin, in words, `row` rows in; and the rows from layer to layer."""
        geometry = self.memory.geometry
        starts = place.keys_at + row * geometry.k_bytes, place.values_at + row * geometry.v_bytes
        return starts[0] // geometry.word, starts[1] // geometry.word, stride

    def _launch(self, kernel: str, work: Work, source: Place, *numbers: int) -> None:
        to = self.memory.rows.place
        blocks = source.keys, source.values, to.keys, to.values, self.memory.lengths
        self.space.runtime.launch(kernel, work, *blocks, *numbers)

    def take(self, keys: Array, values: Array) -> Place:
        """Copy rows to the step's input, in their form if they have one."""
        m = len(self.lengths)
        if self.config.form is None:
            return self.space.staged(self._geometry(m), keys, values, block=self.input)
        codec = self.memory.codec(self.layers * m)
        source = self.space.staged(replace(codec.plain, heads=self.layers * m), keys, values)
        codec.encoded(source._replace(slots=1), self.input)  # a line of kv_heads rows is as many lines of one
        return self.taken

    def lying(self, keys: Any, values: Any) -> Place | None:
        """Give rows of a step where they lie, if they are on the device as they are kept."""
        if self.config.form is not None:
            return None
        return resident.source(self.space.runtime, self.config.kv_heads, keys, values)

    @property
    def taken(self) -> Place:
        """Give the step's input rows."""
        return Place.packed(self.input, self._geometry(len(self.lengths)), self.config.kv_heads)

    def append(self, source: Place) -> None:
        """Append one row behind every length, which the device reads and advances; one launch. The host's lengths
        do not change."""
        if self.by_hand(source):
            return
        m, heads = len(self.lengths), self.config.kv_heads
        geometry, to = self.memory.geometry, self.memory.rows.place
        word = geometry.word
        widths = geometry.k_bytes // word, geometry.v_bytes // word
        sizes = self.layers, m, self.places, heads, *widths
        starts = source.keys_at, source.values_at, to.keys_at, to.values_at
        shape = Work(max(widths), 1, m, min(self.layers, MOST_PARTS))
        self._launch(f"step{word}", shape, source, *sizes, *(at // word for at in starts), to.slots)
        self.space.runtime.meter.device_to_device += self.layers * m * self.config.row_bytes

    def by_hand(self, source: Place) -> bool:
        """Have the host append one row behind every length, where it may: tell whether it did."""
        return self.memory.rows.by_hand.put_step(self.memory.lengths, self.lengths, self.layers, source)

    def advance(self) -> None:
        """Advance every sequence's length on the host by one row."""
        self.lengths += 1
        self.held += 1
