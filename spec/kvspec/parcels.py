"""Parcels: rows that leave a cache, and a descriptor that says what they are and how they lie.

A descriptor is an object of JSON. It names what a reader needs, and never who wrote it:

- `version`: 1;
- `batch`, `kv_heads`, `k_dim`, `v_dim`, `dtype`, `form`: the rows, as in a config;
- `offset`: the position of the next token;
- `spans`: the positions of the rows, as pairs `[start, stop)` in order;
- `order`: a letter for each axis, the slowest first: B sequences, H heads, P pages, N rows of a page, D elements
  of a row, or bytes where it has a form;
- `page`: the rows of a page. What lies behind the last row in the last page is nobody's;
- `sums`: the CRC-32 of the bytes of the keys, and of those of the values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from kvspec.geometry import DTYPES, Array, Config, Pair, forms

VERSION = 1
"""The version of descriptors that this module writes, and the only one that there is."""

AXES = "BHPND"
"""The axes in the order in which rows are `[batch, kv_heads, n, dim]`."""

ORDERS = ("BHPND", "BPNHD", "BPHND", "PNBHD", "PBHND", "BHDPN")
"""Orders of axes that carriers write: heads first, tokens first, pages of heads, pages of tokens that all sequences
share, pages of all sequences, and elements before rows."""

ROWS = ("batch", "kv_heads", "k_dim", "v_dim", "dtype", "form")
"""The fields of a descriptor that a cache's config has too."""


def spans(positions: Iterable[int]) -> list[list[int]]:
    """Give positions, in order, as pairs `[start, stop)`."""
    found: list[list[int]] = []
    for p in positions:
        if found and found[-1][1] == p:
            found[-1][1] = p + 1
        else:
            found.append([p, p + 1])
    return found


class Parcel(NamedTuple):
    """A descriptor, and the bytes of keys and of values as it says that they lie. It is a value."""

    descriptor: Mapping[str, Any]
    keys: bytes
    values: bytes

    @property
    def offset(self) -> int:
        """Give the position of the next token."""
        return int(self.descriptor["offset"])

    @property
    def positions(self) -> list[int]:
        """Give the positions of its rows, in order."""
        return [p for start, stop in self.descriptor["spans"] for p in range(start, stop)]

    @property
    def config(self) -> Config:
        """Give the geometry of its rows."""
        return Config(**{name: self.descriptor[name] for name in ROWS})

    def rows(self) -> Pair:
        """Give its rows in the order of positions, `[batch, kv_heads, n, k_dim]` and as many values; of a form
        their bytes. Raises ValueError where bytes are missing, or are not those that were packed."""
        if (why := self.damage()) is not None:
            raise ValueError(why)
        return Pair(*(_unfolded(self.descriptor, part, data) for part, data in zip("kv", self[1:], strict=True)))

    def damage(self) -> str | None:
        """Tell what is wrong with its version or its bytes; None where nothing is."""
        if self.descriptor["version"] != VERSION:
            return f"version {self.descriptor['version']} is not {VERSION}"
        for part, data, known in zip("kv", self[1:], self.descriptor["sums"], strict=True):
            size = int(np.prod(_sizes(self.descriptor, part))) * _dtype(self.descriptor).itemsize
            if len(data) != size:
                return f"{len(data)} bytes of {'keys' if part == 'k' else 'values'}, not {size}"
            if crc32(data) != known:
                return f"the sum of the {'keys' if part == 'k' else 'values'} is another"
        return None

    def carried(
        self, order: str, page: int, cut: int = 0, flip: int | None = None, version: int | None = None
    ) -> Parcel:
        """Give what a carrier delivers: the rows in another order of axes and pages of so many rows (0: one page);
        then without the last `cut` bytes, with another byte at `flip`, or of another version. A parcel that is
        damaged is delivered as it is."""
        made = self if self.damage() else packed(self.config, self.offset, self.positions, self.rows(), order, page)
        descriptor = dict(made.descriptor) | ({} if version is None else {"version": version})
        data = bytearray(made.keys + made.values)
        if flip is not None and data:
            data[flip % len(data)] ^= 1
        keys, values = bytes(data[: len(made.keys)]), bytes(data[len(made.keys) :])
        kept = max(0, len(data) - cut)
        return Parcel(descriptor, keys[:kept], values[: max(0, kept - len(keys))])


def packed(
    config: Config, offset: int, positions: Iterable[int], rows: Pair, order: str = AXES, page: int = 0
) -> Parcel:
    """Pack rows `[batch, kv_heads, n, dim]` of these positions, in order; of a form their bytes. Axes lie in
    `order`, and a page has so many rows (0: one page has all)."""
    found = spans(positions)
    descriptor = {
        "version": VERSION,
        **{name: getattr(config, name) for name in ROWS},
        "offset": offset,
        "spans": found,
        "order": order,
        "page": page or max(1, rows.keys.shape[2]),
    }
    keys, values = (_folded(descriptor, part, array) for part, array in zip("kv", rows, strict=True))
    descriptor["sums"] = [crc32(keys), crc32(values)]
    return Parcel(json.loads(json.dumps(descriptor)), keys, values)


def fits(config: Config, descriptor: Mapping[str, Any]) -> bool:
    """Tell whether rows of a parcel are of a config's geometry and form."""
    return all(descriptor[name] == getattr(config, name) for name in ROWS)


def _dtype(descriptor: Mapping[str, Any]) -> np.dtype[Any]:
    """The dtype of what lies in a parcel."""
    return np.dtype(np.uint8) if descriptor["form"] else DTYPES[descriptor["dtype"]]


def _width(descriptor: Mapping[str, Any], part: str) -> int:
    kept = forms(Config(**{name: descriptor[name] for name in ROWS}))
    dim = int(descriptor[f"{part}_dim"])
    return dim if kept is None else kept["kv".index(part)].row_bytes(dim)


def _sizes(descriptor: Mapping[str, Any], part: str) -> tuple[int, ...]:
    """The sizes of the axes in the order of AXES."""
    n, page = sum(stop - start for start, stop in descriptor["spans"]), int(descriptor["page"])
    return descriptor["batch"], descriptor["kv_heads"], -(-n // page), page, _width(descriptor, part)


def _unfolded(descriptor: Mapping[str, Any], part: str, data: bytes) -> Array:
    sizes, order = dict(zip(AXES, _sizes(descriptor, part), strict=True)), str(descriptor["order"])
    cells = np.frombuffer(data, _dtype(descriptor)).reshape([sizes[axis] for axis in order])
    rows = cells.transpose([order.index(axis) for axis in AXES])
    n = sum(stop - start for start, stop in descriptor["spans"])
    return rows.reshape(sizes["B"], sizes["H"], sizes["P"] * sizes["N"], sizes["D"])[:, :, :n].copy()


def _folded(descriptor: Mapping[str, Any], part: str, rows: Array) -> bytes:
    sizes = _sizes(descriptor, part)
    batch, heads, pages, page, width = sizes
    cells = np.full((batch, heads, pages * page, width, rows.itemsize), 0xFF, np.uint8)
    cells[:, :, : rows.shape[2]] = np.ascontiguousarray(rows).view(np.uint8).reshape(*rows.shape, rows.itemsize)
    order = [AXES.index(axis) for axis in descriptor["order"]]
    return cells.reshape(*sizes, rows.itemsize).transpose([*order, 5]).tobytes()
