"""Device memory for rows, and scratch space. Slots lie between guard bands, and are poisoned until they are
written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from kvgpu.memory import device_arrays as resident
from kvgpu.memory.by_hand import ByHand
from kvgpu.memory.layout import Geometry, Place, Span, aligned, move, writer
from kvgpu.memory.rope_tables import Tables
from kvgpu.runtime import Block, Hosting, Runtime, Work
from kvspec.geometry import Array

GUARD = 0x5AC35AC3
"""The word of 4 bytes that fills guard bands."""

LINE = 32
"""Words of 4 bytes that are prepared together."""


LARGE = 1 << 20
"""Bytes of the largest buffer whose rows are poisoned."""


class GuardBroken(AssertionError):
    """Something wrote outside the slots of a buffer."""


class Rows:
    """`slots` slots of keys and values in one block: guard, keys, guard, values, guard.

    A slot that was never written holds NaN in every dtype (all bits set). In a buffer of more than 1 MiB it holds
    what was there before: nearly all of it is written next, and twice would take half as long again. A guard band
    is at least two rows long.
    """

    def __init__(self, runtime: Runtime, geometry: Geometry, slots: int) -> None:
        self.runtime, self.geometry, self.slots = runtime, geometry, slots
        band = aligned(2 * max(geometry.k_bytes, geometry.v_bytes))
        keys_end = band + slots * geometry.heads * geometry.k_bytes
        values = aligned(keys_end) + band
        self.ends = band, keys_end, values, values + slots * geometry.heads * geometry.v_bytes
        self.block = runtime.allocate(aligned(self.ends[3]) + band)
        self.place = Place(self.block, self.block, band, values, slots)
        self._prepare()

    @cached_property
    def by_hand(self) -> ByHand:
        """Give what the host may do itself."""
        return ByHand(self.runtime, self.geometry, self.place)

    @cached_property
    def write_row(self) -> Callable[[Place, int], None]:
        """Write one packed row to a slot."""
        put, heads, launch = self.by_hand.put, self.geometry.heads, writer(self.runtime, self.geometry, self.place)

        def write(source: Place, at: int) -> None:
            if not put(source, at, 0, heads):
                launch(source, at)

        return write

    def _prepare(self) -> None:
        words, ends = self.block.nbytes // 4, [aligned4(end) // 4 for end in self.ends]
        if self.block.nbytes <= LARGE:
            self.runtime.launch("prepare", Work(LINE, -(-words // LINE)), self.block, words, LINE, *ends, GUARD)
            return
        around = words - (ends[1] - ends[0]) - (ends[3] - ends[2])
        self.runtime.launch("guards", Work(LINE, -(-around // LINE)), self.block, words, *ends, GUARD)

    def clear(self) -> None:
        """Make every row zeros."""
        words, ends = self.block.nbytes // 4, (aligned4(end) // 4 for end in self.ends)
        self.runtime.launch("clear", Work(LINE, -(-words // LINE)), self.block, words, LINE, *ends)

    @property
    def nbytes(self) -> int:
        """Count the bytes of its rows, without guards."""
        return self.slots * self.geometry.row_bytes

    def release(self) -> None:
        """Release the memory."""
        self.block.release()

    def check_guards(self) -> None:
        """Raise GuardBroken if any word of a guard band has changed."""
        keys, keys_end, values, values_end = (aligned4(end) for end in self.ends)
        for name, start, stop in (
            ("before the keys", 0, keys),
            ("between keys and values", keys_end, values),
            ("behind the values", values_end, self.block.nbytes),
        ):
            with self.runtime.meter.paused():
                found = self.runtime.download(self.block, start, stop - start).view(np.uint32)
            if (found != GUARD).any():
                raise GuardBroken(f"the guard band {name} was overwritten at word {int(np.argmax(found != GUARD))}")


def aligned4(nbytes: int) -> int:
    """Round up to a multiple of 4."""
    return -(-nbytes // 4) * 4


class Workspace:
    """Scratch memory that the caches of one runtime share: it grows to the largest need, and is kept.

    `stage` holds data from the host, `other` data that moves between two places. With `checks`, guard bands are
    checked whenever rows are read.
    """

    def __init__(self, runtime: Runtime, checks: bool = False) -> None:
        self.runtime, self.checks = runtime, checks
        self._blocks: dict[str, Block] = {}
        self.tables = Tables(runtime)

    def scratch(self, name: str, nbytes: int) -> Block:
        """Give at least this many bytes, to be used before the next call with this name."""
        block = self._blocks.get(name)
        if block is None or block.nbytes < nbytes:
            block = self.runtime.allocate(1 << max(12, (nbytes - 1).bit_length()))
            self._blocks[name] = block
        return block

    def staged(self, geometry: Geometry, *arrays: Array, block: Block | None = None) -> Place:
        """Upload keys, and values if there are some, `[..., n, D]`, in one go, into a block or else into scratch
        space. Rows that are on the device stay where they are, unless a block is given for them."""
        rows = arrays[0].shape[-2]
        there = resident.source(self.runtime, rows, *arrays)
        if there is not None:
            return there if block is None else self._moved(geometry, there, block)
        values_at, total = geometry.packed(rows)
        host = np.empty(total, np.uint8)
        for at, array in zip((0, values_at), arrays, strict=False):
            host[at : at + array.nbytes].view(_bits(array)).reshape(array.shape)[...] = array.view(_bits(array))
        block = self.scratch("stage", total) if block is None else block
        self.runtime.upload(host, block)
        return Place.packed(block, geometry, rows)

    def _moved(self, geometry: Geometry, source: Place, block: Block) -> Place:
        target = Place.packed(block, geometry, source.slots)
        move(self.runtime, geometry, source.slots, source.span(), target.span())
        return target

    def other(self, geometry: Geometry, rows: int) -> Place:
        """Give space for packed rows."""
        return Place.packed(self.scratch("other", geometry.packed(rows)[1]), geometry, rows)

    def outgoing(self, geometry: Geometry, rows: int) -> Place:
        """Give space for packed rows that are downloaded next: the host's own where kernels can write there."""
        return self.hosted(geometry, rows) or self.other(geometry, rows)

    def hosted(self, geometry: Geometry, rows: int) -> Place | None:
        """Give the host's memory for packed rows, to be downloaded without a copy; None where there is none."""
        runtime, nbytes = self.runtime, geometry.packed(rows)[1]
        there = runtime.hosted(nbytes) if isinstance(runtime, Hosting) else None
        return None if there is None else Place.packed(there, geometry, rows)

    def straightened(self, geometry: Geometry, rows: int, source: Span) -> Span:
        """Give contiguous rows to download: in place if they are so, else gathered elsewhere."""
        if source.straight(rows):
            return source
        target = self.outgoing(geometry, rows).span()
        move(self.runtime, geometry, rows, source, target)
        return target


def _bits(array: Array) -> np.dtype[np.unsignedinteger]:
    """View elements as unsigned integers of their width: copying these keeps every bit."""
    return np.dtype(f"u{array.dtype.itemsize}")
