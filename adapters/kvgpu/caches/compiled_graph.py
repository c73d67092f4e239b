"""A small stand-in for compiled graphs on a device: handles of all layers in one block, and attention over them.

A graph takes the handles, queries and n new rows of each layer. It writes the rows behind the padding. So its
outputs 1 + 2 l and 2 + 2 l are, without a copy, the handles of the next graph. Output 0 is that of attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvgpu.caches.attention import Positions, Ready, Runs
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.layout import Geometry, Place, Span, move
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config


def geometry(config: Config) -> Geometry:
    """The geometry of rows of all layers: it has one head for each head of every sequence in every layer."""
    return Geometry.of(together(config))


def together(config: Config) -> Config:
    """The config of a cache that has the sequences of all layers."""
    return config.changed(batch=_layers(config) * config.batch)


def kept(config: Config, kind: str, n: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Give the shape `[batch, kv_heads, n, dim]` of a layer's rows, and their dtype, as they are kept."""
    shape, one = config.shape(kind, n), Geometry.of(config)
    if config.form is None:
        return shape, DTYPES[config.dtype]
    return (*shape[:3], one.k_bytes if kind == "k" else one.v_bytes), np.dtype(np.uint8)


def _layers(config: Config) -> int:
    layers: int = config.layers
    return layers


def encoded(space: Workspace, config: Config, keys: Any, values: Any) -> Pair:
    """Give rows of all layers, one at least, on the host, as the bytes of their form; the device makes these."""
    n = int(keys.shape[3])
    return _whole(space, Codec(space, together(config)).staged(keys, values), config, n, _layers(config))


def shown(space: Workspace, config: Config, rows: Pair) -> Pair:
    """Give a layer's rows `[batch, kv_heads, n, dim]` as they are read, of those that the host keeps."""
    n, plain = int(rows.keys.shape[2]), config.changed(form=None)
    if config.form is None:
        return Pair(*(a.copy() for a in rows))
    if n == 0:
        return Pair(*(np.empty(config.shape(kind, 0), DTYPES[config.dtype]) for kind in "kv"))
    codec = Codec(space, config)
    return _whole(space, codec.decoded(space.staged(codec.kept, *rows), n), plain, n)


def _whole(space: Workspace, place: Place, config: Config, n: int, *layers: int) -> Pair:
    """Download n packed rows, all that a place has."""
    found = list[Array]()
    for kind, block, at in (("k", place.keys, place.keys_at), ("v", place.values, place.values_at)):
        shape, dtype = kept(config, kind, n)
        nbytes = int(np.prod((*layers, *shape))) * dtype.itemsize
        lines = space.runtime.download(block, at, nbytes) if nbytes else np.empty(0, np.uint8)  # latent values
        found.append(lines.view(dtype).reshape(*layers, *shape))
    return Pair(*found)


class Handles:
    """Keys and values of all layers, `[layers, batch, kv_heads, bound + room, dim]`, zeros at first. They have
    the slots of a bound, and behind these `room` for the rows that a graph writes; `behind` of them are
    written."""

    def __init__(self, space: Workspace, config: Config, bound: int, room: int) -> None:
        self.space, self.config, self.bound, self.behind = space, config, bound, 0
        self.geometry, self.codec = geometry(config), Codec(space, together(config))
        self.rows = Rows(space.runtime, self.geometry, bound + room)
        self.rows.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of its rows; guards do not count."""
        return self.rows.nbytes

    def release(self) -> None:
        """Give the memory back."""
        self.rows.release()

    def slots(self, first: int) -> Span:
        """The slots from `first` on."""
        return self.rows.place.span(first)

    def put(self, n: int, source: Span, slot: int) -> None:
        """Copy n rows of every layer to the slots from `slot` on; one launch."""
        move(self.space.runtime, self.geometry, n, source, self.slots(slot))

    def compact(self, slot: int) -> None:
        """Copy the row behind the padding to its slot; one launch, or none if it is there already."""
        if slot != self.bound:
            self.put(1, self.slots(self.bound), slot)

    def run(self, ready: Ready, new: Place, past: int) -> Any:
        """Write the new rows behind the padding; the queries see `past` rows and these. Gives output 0."""
        self.put(new.slots, new.span(), self.bound)
        self.behind = new.slots
        place = self.rows.place
        if self.config.form is not None:
            place = self.codec.decoded(place, place.slots)
        lie = Runs(place, self.config.kv_heads * place.slots, 0, past, self.bound)
        return ready.answer(lie, Positions(0, past + new.slots))

    def fetched(self, *parts: tuple[int, int], layer: int | None = None) -> Pair:
        """Download rows of all layers, or of one, as they are kept: only those of the parts, each a first slot and
        a number of rows."""
        if self.space.checks:
            self.rows.check_guards()
        there = self.space.hosted(self.geometry, sum(n for _, n in parts)) if layer is None else None
        if there is not None:
            return self._gathered(there, parts)
        place = self.rows.place
        found = [Pair(*(self._lines(place, kind, slot, n, layer) for kind in "kv")) for slot, n in parts]
        return Pair(*(np.concatenate(rows, axis=-2) for rows in zip(*found, strict=True)))

    def _gathered(self, there: Place, parts: tuple[tuple[int, int], ...]) -> Pair:
        """Gather rows of all layers in the host's memory, the parts side by side: one launch for each part."""
        filled = 0
        for slot, n in parts:
            move(self.space.runtime, self.geometry, n, self.slots(slot), there.span(filled))
            filled += n
        return Pair(*(self._lines(there, kind, 0, filled, None) for kind in "kv"))

    def _lines(self, place: Place, kind: str, slot: int, n: int, layer: int | None) -> Array:
        """Download n adjacent rows, one line of bytes for each head: `[layers, ...]`, or `[...]` of one layer."""
        shape, dtype = kept(self.config, kind, n)
        layers = (_layers(self.config),) if layer is None else ()
        if 0 in shape:
            return np.empty((*layers, *shape), dtype)
        heads, size = shape[0] * shape[1], shape[3] * dtype.itemsize
        block, begin = (place.keys, place.keys_at) if kind == "k" else (place.values, place.values_at)
        at = begin + ((layer or 0) * heads * place.slots + slot) * size
        height = heads * (layers[0] if layers else 1)
        lines = self.space.runtime.download(block, at, n * size, height, place.slots * size)
        rows: Array = lines.view(dtype).reshape(*layers, *shape)
        return rows


@dataclass(frozen=True)
class Encoded:
    """The rows of an encoder, n of each layer, packed in a block of their own."""

    codec: Codec
    place: Place
    nbytes: int

    @classmethod
    def of(cls, space: Workspace, config: Config, n: int, keys: Any, values: Any) -> Encoded:
        """Upload them, or copy them from where they lie on the device."""
        whole, codec = geometry(config), Codec(space, together(config))
        block = space.runtime.allocate(max(1, whole.packed(n)[1]))
        if n == 0:
            place = Place.packed(block, whole, 0)
        elif config.form is None:
            place = space.staged(whole, keys, values, block=block)
        else:
            place = codec.encoded(space.staged(codec.plain, keys, values), block)
        return cls(codec, place, n * whole.row_bytes)

    def answer(self, ready: Ready, config: Config) -> Any:
        """Attend: every query sees all of them."""
        n, place = self.place.slots, self.place
        if config.form is not None and n:
            place = self.codec.decoded(place, n)
        return ready.answer(Runs(place, config.kv_heads * n), Positions(0, n))
