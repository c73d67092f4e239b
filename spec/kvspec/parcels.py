"""Parcels: rows that leave a cache, and a descriptor that says what they are and how they lie.

A descriptor is an object of JSON. It names what a reader needs, and never who wrote it:

- `version`: 1;
- `batch`, `kv_heads`, `k_dim`, `v_dim`, `dtype`, `form`: the rows, as in a config, with the heads of all ranks;
- `heads`: the first of the heads that it holds, and the one behind the last;
- `layer`: the number of the layer that it is a part of, or null where the cache has no layers;
- `holds`: what its rows are, which is `tokens`, a layer's `state`, or the rows of an `encoder`;
- `offset`: the position of the next token;
- `spans`: the positions of the rows, as pairs `[start, stop)` in order;
- `order`: a letter for each axis, the slowest first. B is sequences, H heads, P pages and N rows of a page. D is
  the elements of a row, or its bytes where it has a form. K is there if keys and values lie in one buffer, which
  then is that of the keys. For every index of the axes before K, first come the keys, then the values;
- `page`: the rows of a page. What lies behind the last row in the last page is nobody's;
- `sums`: the CRC-32 of the bytes of the keys, and of those of the values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from kvspec.geometry import DTYPES, Array, Config, Pair, forms, heads_of, of_all_ranks

VERSION = 1
"""The version of descriptors that this module writes, and the only one that there is."""

AXES = "BHPND"
"""The axes in the order in which rows are `[batch, kv_heads, n, dim]`."""

BOTH = "K"
"""The axis of keys and values, where they lie in one buffer. D lies behind it: widths may be unlike."""

ROWS = ("batch", "kv_heads", "k_dim", "v_dim", "dtype", "form")
"""The fields of a descriptor that a cache's config has too; its `kv_heads` are those of all ranks."""


TOKENS, STATE, ENCODER = "tokens", "state", "encoder"
"""What the rows of a parcel are: those of tokens, a state that tokens were folded into, or an encoder's."""


class Sort(NamedTuple):
    """What a parcel is a part of: the layer, if its cache has layers, and what its rows are."""

    layer: int | None = None
    holds: str = TOKENS


ALONE = Sort()
"""The rows of a cache without layers."""


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
    def sort(self) -> Sort:
        """Give the layer that it is a part of, and what its rows are."""
        return Sort(self.descriptor.get("layer"), self.descriptor.get("holds", TOKENS))

    @property
    def heads(self) -> range:
        """Give the numbers of its heads among all that there are."""
        return range(*self.descriptor["heads"])

    @property
    def config(self) -> Config:
        """Give the geometry of its rows: that of the cache that was packed, a rank's where it lacks heads."""
        held, all_ = self.heads, self.descriptor["kv_heads"]
        rank = None if len(held) == all_ else f"{held.start}/{all_}"
        return Config(**{name: self.descriptor[name] for name in ROWS}).changed(kv_heads=len(held), rank=rank)

    def rows(self) -> Pair:
        """Give its rows in the order of positions, `[batch, heads, n, k_dim]` and as many values; of a form
        their bytes. Raises ValueError where bytes are missing, or are not those that were packed."""
        if (why := self.damage()) is not None:
            raise ValueError(why)
        keys, values = self._apart()
        return Pair(_unfolded(self.descriptor, "k", keys), _unfolded(self.descriptor, "v", values))

    def state(self) -> Array:
        """Give the state that it holds, `[heads, k_dim, v_dim]` in f32: zeros where it has no row. Raises
        ValueError as `rows` does."""
        row = self.rows().keys
        found = row[:, :, 0] if row.shape[2] else np.zeros((row.shape[0], *row.shape[1::2]), np.float32)
        return np.ascontiguousarray(found.transpose(1, 0, 2))

    def _apart(self) -> tuple[bytes, bytes]:
        """Give the bytes of keys, and those of values, also where they lie in one buffer."""
        outer, both, _ = self.descriptor["order"].partition(BOTH)
        if not both:
            return self.keys, self.values
        sizes = dict(zip(AXES, _sizes(self.descriptor, "k"), strict=True))
        times = max(1, int(np.prod([sizes[axis] for axis in outer])))
        cells, own = np.frombuffer(self.keys, np.uint8).reshape(times, -1), _bytes(self.descriptor, "k") // times
        return cells[:, :own].tobytes(), cells[:, own:].tobytes()

    def damage(self) -> str | None:
        """Tell what is wrong with its version or its bytes; None where nothing is."""
        if self.descriptor["version"] != VERSION:
            return f"version {self.descriptor['version']} is not {VERSION}"
        keys, values = (_bytes(self.descriptor, part) for part in "kv")
        sizes = (keys + values, 0) if BOTH in self.descriptor["order"] else (keys, values)
        sums = self.descriptor["sums"]
        for part, data, size, known in zip(("keys", "values"), self[1:], sizes, sums, strict=True):
            if len(data) != size:
                return f"{len(data)} bytes of {part}, not {size}"
            if crc32(data) != known:
                return f"the sum of the {part} is another"
        return None

    def carried(
        self, order: str, page: int, cut: int = 0, flip: int | None = None, version: int | None = None
    ) -> Parcel:
        """Give what a carrier delivers, which is the rows in another order of axes and pages of so many rows (0:
        one page). Then it lacks the last `cut` bytes, has another byte at `flip`, or is of another version. A
        parcel that is damaged is delivered as it is."""
        rows = None if self.damage() else self.rows()
        positions = self.positions
        made = packed(self.config, self.offset, positions, rows, order, page, self.sort) if rows else self
        descriptor = dict(made.descriptor) | ({} if version is None else {"version": version})
        data = bytearray(made.keys + made.values)
        if flip is not None and data:
            data[flip % len(data)] ^= 1
        keys, values = bytes(data[: len(made.keys)]), bytes(data[len(made.keys) :])
        kept = max(0, len(data) - cut)
        return Parcel(descriptor, keys[:kept], values[: max(0, kept - len(keys))])


def packed(
    config: Config,
    offset: int,
    positions: Iterable[int],
    rows: Pair,
    order: str = AXES,
    page: int = 0,
    sort: Sort = ALONE,
) -> Parcel:
    """Pack rows `[batch, kv_heads, n, dim]` of these positions, in order; of a form their bytes. Axes lie in
    `order`, and a page has so many rows (0: one page has all)."""
    found, heads = spans(positions), heads_of(config)
    descriptor = {
        "version": VERSION,
        **{name: getattr(config, name) for name in ROWS},
        "kv_heads": heads.all,
        "heads": heads[:2],
        **sort._asdict(),
        "offset": offset,
        "spans": found,
        "order": order,
        "page": page or max(1, rows.keys.shape[2]),
    }
    keys, values = _together(descriptor, [_folded(descriptor, p, a) for p, a in zip("kv", rows, strict=True)])
    descriptor["sums"] = [crc32(keys), crc32(values)]
    return Parcel(json.loads(json.dumps(descriptor)), keys, values)


def _together(descriptor: Mapping[str, Any], folded: list[Array]) -> tuple[bytes, bytes]:
    """The bytes of keys and of values; those of keys hold both where they lie in one buffer."""
    outer, both, _ = descriptor["order"].partition(BOTH)
    if not both:
        return folded[0].tobytes(), folded[1].tobytes()
    times = max(1, int(np.prod(folded[0].shape[: len(outer)])))
    return np.concatenate([cells.reshape(times, -1) for cells in folded], axis=1).tobytes(), b""


def of_state(config: Config) -> Config:
    """Give the config of a state, which is one row `[k_dim, kv_heads, 1, v_dim]` of keys in f32 without values."""
    return config.changed(batch=config.k_dim, k_dim=config.v_dim, v_dim=0, dtype="f32", layers=None, of=None)


def of_layers(parts: Sequence[Any], chosen: Sequence[int]) -> list[Any]:
    """Give the parts of chosen layers in this order. Each is the number of one of the layers that are there, and
    numbers beyond these begin anew. Where none is chosen, give all."""
    there = sorted({part.sort.layer for part in parts}, key=lambda layer: -1 if layer is None else layer)
    layers = [there[number % len(there)] for number in chosen]
    return [part for layer in layers for part in parts if part.sort.layer == layer] or [*parts]


def fits(config: Config, descriptor: Mapping[str, Any], holds: str = TOKENS) -> bool:
    """Tell whether rows of a parcel are of a config's geometry and form, and of this sort, whichever heads it
    holds."""
    whole = of_all_ranks(config)
    return descriptor.get("holds", TOKENS) == holds and all(
        descriptor[name] == getattr(whole, name) for name in ROWS
    )


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
    return descriptor["batch"], len(range(*descriptor["heads"])), -(-n // page), page, _width(descriptor, part)


def _bytes(descriptor: Mapping[str, Any], part: str) -> int:
    """How many bytes keys, or values, have."""
    return int(np.prod(_sizes(descriptor, part))) * _dtype(descriptor).itemsize


def _axes(descriptor: Mapping[str, Any]) -> str:
    """The order of the axes that keys and values each have."""
    return str(descriptor["order"]).replace(BOTH, "")


def _unfolded(descriptor: Mapping[str, Any], part: str, data: bytes) -> Array:
    sizes, order = dict(zip(AXES, _sizes(descriptor, part), strict=True)), _axes(descriptor)
    cells = np.frombuffer(data, _dtype(descriptor)).reshape([sizes[axis] for axis in order])
    rows = cells.transpose([order.index(axis) for axis in AXES])
    n = sum(stop - start for start, stop in descriptor["spans"])
    return rows.reshape(sizes["B"], sizes["H"], sizes["P"] * sizes["N"], sizes["D"])[:, :, :n].copy()


def _folded(descriptor: Mapping[str, Any], part: str, rows: Array) -> Array:
    """The bytes of rows in the order of the axes, the bytes of an element last."""
    sizes = _sizes(descriptor, part)
    batch, heads, pages, page, width = sizes
    cells = np.full((batch, heads, pages * page, width, rows.itemsize), 0xFF, np.uint8)
    cells[:, :, : rows.shape[2]] = np.ascontiguousarray(rows).view(np.uint8).reshape(*rows.shape, rows.itemsize)
    order = [AXES.index(axis) for axis in _axes(descriptor)]
    return np.ascontiguousarray(cells.reshape(*sizes, rows.itemsize).transpose([*order, 5]))
