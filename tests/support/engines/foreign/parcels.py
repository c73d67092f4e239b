"""MOVE over lists of rows: every byte is found by multiplication, one row of one head after the other.

Written from the text of the chapter alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from kvspec.parcels import Parcel
from support.engines.foreign import Foreign, paging, remembering
from support.engines.foreign.demands import want

FIELDS = ("batch", "kv_heads", "k_dim", "v_dim", "dtype", "form")


def described(config: Any, offset: int, positions: list[int], keys: bytes, values: bytes) -> Parcel:
    """Rows that lie sequence after sequence, row after row, head after head: each row is a page."""
    spans = [[p, p + 1] for p in positions]
    made = {name: getattr(config, name) for name in FIELDS}
    made |= {"version": 1, "offset": offset, "spans": spans, "order": "BPNHD", "page": 1}
    return Parcel({**made, "sums": [zlib.crc32(keys), zlib.crc32(values)]}, keys, values)


def demanded(config: Any, parcel: Parcel, needs: list[int]) -> list[int]:
    """The place of each needed position among the rows of a parcel."""
    says = parcel.descriptor
    want(says["version"] == 1, "another version")
    want(all(says[name] == getattr(config, name) for name in FIELDS), "other rows")
    there = [p for start, stop in says["spans"] for p in range(start, stop)]
    for data, name, known in zip(parcel[1:], ("k_dim", "v_dim"), says["sums"], strict=True):
        rows = -(-len(there) // says["page"]) * says["page"]
        size = says["batch"] * says["kv_heads"] * rows * says[name] * DTYPES[says["dtype"]].itemsize
        want(len(data) == size and zlib.crc32(data) == known, "damaged")
    want(set(needs) <= set(there), "rows are missing")
    return [there.index(p) for p in needs]


def row(parcel: Parcel, which: int, batch: int, head: int, number: int) -> Any:
    """One row of one head."""
    says, dim = parcel.descriptor, parcel.descriptor[("k_dim", "v_dim")[which]]
    n, page = sum(stop - start for start, stop in says["spans"]), says["page"]
    sizes = {"B": says["batch"], "H": says["kv_heads"], "P": -(-n // page), "N": page, "D": dim}
    step, steps = 1, dict[str, int]()
    for axis in reversed(says["order"]):
        steps[axis], step = step, step * sizes[axis]
    at = batch * steps["B"] + head * steps["H"] + number // page * steps["P"] + number % page * steps["N"]
    elements = np.frombuffer(parcel[1 + which], DTYPES[says["dtype"]])
    return elements[[at + d * steps["D"] for d in range(dim)]]


def rows(parcel: Parcel, numbers: list[int]) -> Iterator[tuple[Any, Any]]:
    """Keys `[batch, heads, dim]` and values of these rows."""
    says = parcel.descriptor
    for number in numbers:
        both = []
        for which in (0, 1):
            places = product(range(says["batch"]), range(says["kv_heads"]))
            flat = np.stack([row(parcel, which, b, h, number) for b, h in places])
            both.append(flat.reshape(says["batch"], says["kv_heads"], -1))
        yield both[0], both[1]


class Carrying(remembering.Remembering):
    """A list of rows, None for those that were left behind."""

    floor = 0

    def free(self) -> None:
        """Begin anew."""
        super().free()
        self.floor = 0

    def shown(self, end: int) -> list[int]:
        """The positions that a query at `end` sees below it."""
        return [p for p in range(end) if p < self.kept or self.newest is None or p > end - self.newest]

    def pack(self) -> Parcel:
        """What a next query sees."""
        positions = self.shown(len(self.rows))
        keys, values = (
            np.stack([self.rows[p][i] for p in positions], 1).tobytes() if positions else b"" for i in (0, 1)
        )
        return described(self.config, len(self.rows), positions, keys, values)

    def unpack(self, parcel: Parcel) -> None:
        """Have these rows alone."""
        end = int(parcel.descriptor["offset"])
        needs = self.shown(end)
        numbers = demanded(self.config, parcel, needs)
        want(self.config.max_len is None or end <= self.config.max_len, "no room")
        found = dict(zip(needs, rows(parcel, numbers), strict=True))
        self.free()
        self.rows: list[Any] = [found.get(p) for p in range(end)]
        self.floor, self.written = end if len(needs) < end else 0, end > 0

    def can_rewind(self, to: int) -> bool:
        """Whether such rows can be dropped, and those before are there."""
        return super().can_rewind(to) and to >= self.floor

    def restore(self, saved: Any, to: int) -> None:
        """Put saved rows back, unless some before them are missing."""
        missing = saved is not None and None in [one and 1 for one in saved.rows]
        if missing and saved.open:
            want(to == saved.stop, "rows were left behind")
        super().restore(saved, to)
        if saved is not None:
            self.floor = saved.stop if missing else 0


class Pool(paging.Pool):
    """A pool of lists."""

    def pack(self, sequence: int = 0) -> Parcel:
        """All rows of a sequence."""
        pair = self.read_sequence(sequence)
        keys, values = (array.transpose(1, 0, 2).tobytes() for array in pair)
        n = self.all[sequence].length
        return described(self.config, n, list(range(n)), keys, values)

    def unpack(self, parcel: Parcel) -> int:
        """A new sequence of pages that nobody has."""
        end, size = int(parcel.descriptor["offset"]), self.config.page_size
        numbers = demanded(self.config, parcel, list(range(end)))
        want(self._pages(end) <= self.free_pages(), "no free page")
        found = [(key[0], value[0]) for key, value in rows(parcel, numbers)]
        return self._add(paging.Sequence([found[i : i + size] for i in range(0, end, size)], end))


class Carried:
    """The adapter."""

    cache: Any = Carrying
    pool: Any = Pool

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        chapters: dict[str, Any] = dict.fromkeys((*remembering.KINDS, "mask", "snapshot", "parcels"), "visible")
        chapters["page"] = {"level": "visible", "without": ["gather", "peek"]}
        return {"name": "carried", "chapters": chapters}

    def open(self, kind: str, config: Any) -> Any:
        """A fresh cache or pool."""
        if kind == "page":
            return self.pool(config)
        if kind not in remembering.KINDS or config.form is not None:
            raise Unsupported(f"no kind {kind}")
        return self.cache(kind, config)


class FirstLeftOut(Carrying):
    """The first row of a parcel is the one behind the first that a query sees."""

    def shown(self, end: int) -> list[int]:
        return super().shown(end)[1:]


class LeavesOut(Carried):
    cache = FirstLeftOut


FOREIGN = (Foreign("parcels:Carried", ("parcels",), "each byte of a parcel is found by multiplication"),)
WRONG = {"parcels:LeavesOut": ["MOVE-1"]}
