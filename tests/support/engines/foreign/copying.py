"""COPY over bytes: buffers are `bytearray`, rows are moved by `memmove`, casts are done on whole numbers.

Written from the text of the chapter alone. f16 is made by `struct`, bf16 by adding to the bits of f32.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, WORDS
from support.engines.foreign.demands import want, want_sizes


def to_f16(number: float) -> int:
    """The bits of the nearest f16."""
    try:
        return int(struct.unpack("<H", struct.pack("<e", number))[0])
    except OverflowError:
        return 0xFC00 if number < 0 else 0x7C00


def to_bf16(bits: int) -> int:
    """The bits of the bf16 nearest to an f32 of these bits."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40  # NaN, whatever its payload
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def narrowed(row: Any, dtype: str) -> bytes:
    """The bytes of an f32 row in a narrower dtype."""
    if dtype == "f16":
        cast = [to_f16(float(x)) for x in row.ravel()]
    else:
        cast = [to_bf16(int(bits)) for bits in row.ravel().view(np.uint32)]
    return struct.pack(f"<{len(cast)}H", *cast)


class Side:
    """The buffer of keys, or of values."""

    def __init__(self, config: Any, dim: int) -> None:
        self.capacity, self.heads, self.dim = config.capacity, config.kv_heads, dim
        self.name, self.dtype, self.token = config.dtype, DTYPES[config.dtype], config.layout == "token"
        self.width = dim * self.dtype.itemsize
        self.bytes = bytearray(self.capacity * self.heads * self.width)
        self.address = ctypes.addressof((ctypes.c_char * len(self.bytes)).from_buffer(self.bytes))

    def write(self, row: Any, slot: int) -> None:
        """Put a row `[kv_heads, dim]` into a slot."""
        for head in range(self.heads):
            place = slot * self.heads + head if self.token else head * self.capacity + slot
            one = np.ascontiguousarray(row[head])
            raw = one.tobytes() if one.dtype == self.dtype else narrowed(one, self.name)
            ctypes.memmove(self.address + place * self.width, raw, self.width)

    def view(self) -> Any:
        """The buffer as an array in its own layout."""
        shape = (self.capacity, self.heads) if self.token else (self.heads, self.capacity)
        return np.frombuffer(self.bytes, self.dtype).reshape(*shape, self.dim)

    def slots(self, first: int, n: int) -> Any:
        """Some of its slots, as a source `[n, kv_heads, dim]`."""
        rows = self.view() if self.token else self.view().swapaxes(0, 1)
        return rows[first : first + n]

    def want(self, source: Any, n: int) -> None:
        """Refuse a source that cannot be copied from."""
        want(source.ndim == 3 and source.shape[1:] == (self.heads, self.dim), f"rows are {source.shape}")
        want(source.dtype in (self.dtype, np.float32), f"{source.dtype} into {self.dtype}")
        at = source.__array_interface__["data"][0]
        want(not self.address <= at < self.address + len(self.bytes), "the source is the buffer")
        want(n <= len(source), f"{n} rows of {len(source)}")


class Buffer:
    """Keys and values."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "capacity")
        known = config.layout in WORDS["layout"]
        want(config.batch == 1 and known, f"batch {config.batch}, layout {config.layout}")
        self.capacity, self.sides = config.capacity, (Side(config, config.k_dim), Side(config, config.v_dim))

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Copy rows one after another."""
        sources = keys, values
        if n == 0 or all(0 in source.shape[1:] for source in sources):
            return
        want(len(keys) == len(values), f"{len(keys)} keys, {len(values)} values")
        for side, source in zip(self.sides, sources, strict=True):
            side.want(source, n)
        want(at >= 0 and (sliding or at + n <= self.capacity), f"{n} rows to {at} of {self.capacity}")
        for side, source in zip(self.sides, sources, strict=True):
            for i in range(n):
                side.write(source[i], (at + i) % self.capacity)

    def alias(self, source: int, n: int) -> tuple[Any, Any]:
        """Its own slots."""
        keys, values = (side.slots(source, n) for side in self.sides)
        return keys, values

    def read(self, what: str) -> Pair:
        """Copies of both buffers."""
        return Pair(*(side.view().copy() for side in self.sides))


class Bytes:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "bytes", "chapters": {"copy": "storage"}}

    def open(self, kind: str, config: Any) -> Buffer:
        """A fresh buffer."""
        if kind != "copy":
            raise Unsupported(f"no kind {kind}")
        return Buffer(config)
