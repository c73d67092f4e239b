"""MOVE over lists of rows: every byte is found by multiplication, one row of one head after the other.

Written from the text of the chapter alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from kvspec.parcels import Parcel
from support.engines.foreign import Foreign, paging, remembering
from support.engines.foreign.demands import want

FIELDS = ("batch", "k_dim", "v_dim", "dtype", "form")


def heads_of(config: Any) -> tuple[int, int, int]:
    """The first head, the one behind the last, and how many there are."""
    first, _, all_ = (config.rank or f"0/{config.kv_heads}").partition("/")
    return int(first), int(first) + config.kv_heads, int(all_)


def described(config: Any, offset: int, positions: list[int], keys: bytes, values: bytes) -> Parcel:
    """Rows that lie sequence after sequence, row after row, head after head: each row is a page."""
    spans = [[p, p + 1] for p in positions]
    made = {name: getattr(config, name) for name in FIELDS}
    first, behind, all_ = heads_of(config)
    made |= {"version": 1, "offset": offset, "spans": spans, "order": "BPNHD", "page": 1}
    made |= {"kv_heads": all_, "heads": [first, behind]}
    return Parcel({**made, "sums": [zlib.crc32(keys), zlib.crc32(values)]}, keys, values)


def positions(part: Parcel) -> list[int]:
    """The positions of its rows."""
    return [p for start, stop in part.descriptor["spans"] for p in range(start, stop)]


def size(part: Parcel, which: int) -> int:
    """How many elements its keys have, or its values."""
    says = part.descriptor
    rows = -(-len(positions(part)) // says["page"]) * says["page"]
    return int(says["batch"] * (says["heads"][1] - says["heads"][0]) * rows * says[("k_dim", "v_dim")[which]])


def demanded(config: Any, parts: tuple[Parcel, ...], needs: list[int]) -> None:
    """Refuse parts that are damaged, of other rows or of several offsets, or lack a row of a head."""
    first, behind, all_ = heads_of(config)
    for part in parts:
        says = part.descriptor
        want(says["version"] == 1, "another version")
        want(says["kv_heads"] == all_, "other heads")
        want(all(says[name] == getattr(config, name) for name in FIELDS), "other rows")
        sizes = [size(part, which) * DTYPES[says["dtype"]].itemsize for which in (0, 1)]
        sizes = [sum(sizes), 0] if "K" in says["order"] else sizes
        for data, nbytes, known in zip(part[1:], sizes, says["sums"], strict=True):
            want(len(data) == nbytes and zlib.crc32(data) == known, "damaged")
    want(len({part.descriptor["offset"] for part in parts}) == 1, "parts of several steps")
    for head, p in product(range(first, behind), needs):
        want(any(holds(part, head, p) for part in parts), "a row is missing")


def holds(part: Parcel, head: int, position: int) -> bool:
    """Whether it has this row of this head."""
    return part.descriptor["heads"][0] <= head < part.descriptor["heads"][1] and position in positions(part)


def row(part: Parcel, which: int, batch: int, head: int, number: int) -> Any:
    """One row of one head, counted from the first that is there: an element is so many steps of each axis away."""
    says, dim = part.descriptor, part.descriptor[("k_dim", "v_dim")[which]]
    n, page = len(positions(part)), says["page"]
    sizes = {"B": says["batch"], "H": says["heads"][1] - says["heads"][0], "P": -(-n // page), "N": page, "D": dim}
    before, both, behind = says["order"].rpartition("K")
    step, start, steps = 1, 0, dict[str, int]()
    for axis in reversed(behind):
        steps[axis], step = step, step * sizes[axis]
    if both:  # the values begin behind as many keys, and both come before the next of the axes outside
        start, step = which * step // dim * says["k_dim"], step // dim * (says["k_dim"] + says["v_dim"])
    for axis in reversed(before):
        steps[axis], step = step, step * sizes[axis]
    at = start + batch * steps["B"] + head * steps["H"] + number // page * steps["P"] + number % page * steps["N"]
    elements = np.frombuffer(part[1 if both else 1 + which], DTYPES[says["dtype"]])
    return elements[[at + d * steps["D"] for d in range(dim)]]


def rows(config: Any, parts: tuple[Parcel, ...], needs: list[int]) -> Iterator[tuple[Any, Any]]:
    """Keys `[batch, heads, dim]` and values at these positions, each head from the last part that has it."""
    first, behind, _ = heads_of(config)
    for p in needs:
        both = []
        for which in (0, 1):
            flat = []
            for batch, head in product(range(config.batch), range(first, behind)):
                part = [part for part in parts if holds(part, head, p)][-1]
                within = head - part.descriptor["heads"][0]
                flat.append(row(part, which, batch, within, positions(part).index(p)))
            both.append(np.stack(flat).reshape(config.batch, behind - first, -1))
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
        positions = [p for p in self.left(range(len(self.rows))) if self.near(len(self.rows), p)]
        keys, values = (
            np.stack([self.rows[p][i] for p in positions], 1).tobytes() if positions else b"" for i in (0, 1)
        )
        return described(self.config, len(self.rows), positions, keys, values)

    def unpack(self, *parts: Parcel) -> None:
        """Have these rows alone."""
        end = int(parts[0].descriptor["offset"])
        needs = self.shown(end)
        demanded(self.config, parts, needs)
        want(self.config.max_len is None or end <= self.config.max_len, "no room")
        found = dict(zip(needs, rows(self.config, parts, needs), strict=True))
        self.free()
        self.rows: list[Any] = [found.get(p) for p in range(end)]
        self.floor, self.written = end if len(needs) < end else 0, end > 0

    def keep(self, positions: Sequence[int]) -> None:
        """Show these rows alone; none that was left behind."""
        there = [p for p, row in enumerate(self.rows) if row is not None]
        want(set(positions) <= set(there), f"{positions} of {there}")
        super().keep(positions)

    def can_rewind(self, to: int) -> bool:
        """Whether such rows can be dropped, and those before are there."""
        return super().can_rewind(to) and to >= self.floor

    def restore(self, saved: Any, to: int) -> None:
        """Put saved rows back, unless some before them are missing."""
        missing = saved is not None and any(
            row is None and p not in saved.hidden[0] for p, row in enumerate(saved.rows)
        )
        if missing and saved.open:
            want(to == saved.stop, "rows were left behind")
        super().restore(saved, to)
        if saved is not None:
            self.floor = saved.stop if missing else 0


class Coming(paging.Sequence):
    """Pages for rows that are to come."""


class Pool(paging.Pool):
    """A pool of lists; what is in flight has its own list of pages."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.flying = dict[int, paging.Sequence]()

    def holders(self) -> list[paging.Sequence]:
        """Sequences and transfers."""
        return [*super().holders(), *self.flying.values()]

    def transfers(self) -> list[int]:
        """The rows of each."""
        return [self.flying[i].length if i in self.flying else -1 for i in range(max(self.flying, default=-1) + 1)]

    def _start(self, made: paging.Sequence) -> int:
        number = next(i for i in range(len(self.flying) + 1) if i not in self.flying)
        self.flying[number] = made
        return number

    def send(self, sequence: int) -> int:
        """Keep its pages."""
        of = self._of(sequence)
        return self._start(paging.Sequence(list(of.table), of.length))

    def sent(self, transfer: int) -> Parcel:
        """What is in the pages that were kept."""
        want(type(self.flying.get(transfer)) is paging.Sequence, "nothing is sent")
        return self._described(self.flying.pop(transfer))

    def _described(self, of: paging.Sequence) -> Parcel:
        """Pack rows as if they were the only sequence there is."""
        alone = Pool(self.config)
        alone.all = {0: of}
        return alone.pack()

    def expect(self, n: int) -> int:
        """Take pages."""
        want(self._pages(n) <= self.free_pages(), "no free page")
        return self._start(Coming([[] for _ in range(self._pages(n))], n))

    def arrive(self, transfer: int, *parts: Parcel) -> int:
        """Fill the pages that were taken."""
        of, end = self.flying.get(transfer), int(parts[0].descriptor["offset"])
        want(isinstance(of, Coming), "nothing is expected")
        demanded(self.config, parts, list(range(end)))
        assert of is not None
        want(end == of.length, "others are expected")
        self.lose(transfer)
        return self.unpack(*parts)

    def lose(self, transfer: int) -> None:
        """Forget it."""
        want(transfer in self.flying, "nothing is in flight")
        del self.flying[transfer]

    def pack(self, sequence: int = 0) -> Parcel:
        """All rows of a sequence."""
        pair = self.read_sequence(sequence)
        keys, values = (array.transpose(1, 0, 2).tobytes() for array in pair)
        n = self.all[sequence].length
        return described(self.config, n, list(range(n)), keys, values)

    def unpack(self, *parts: Parcel) -> int:
        """A new sequence of pages that nobody has."""
        end, size = int(parts[0].descriptor["offset"]), self.config.page_size
        demanded(self.config, parts, list(range(end)))
        want(self._pages(end) <= self.free_pages(), "no free page")
        found = [(key[0], value[0]) for key, value in rows(self.config, parts, list(range(end)))]
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


class RankForgotten(Carrying):
    """A rank unpacks the first heads that arrive."""

    def unpack(self, *parts: Parcel) -> None:
        first, behind, _ = heads_of(self.config)
        held = [part.descriptor["heads"] for part in parts]
        wider = [high - low > behind - first for low, high in held]
        super().unpack(*(_shifted(part, first) if w else part for part, w in zip(parts, wider, strict=True)))


def _shifted(part: Parcel, first: int) -> Parcel:
    """The same bytes, named as heads from another first one on."""
    low, high = part.descriptor["heads"]
    return part._replace(descriptor={**part.descriptor, "heads": [first, first + high - low]})


class ForgetsRanks(Carried):
    cache = RankForgotten


class NotKept(Pool):
    """What is sent is what its sequence has at the end."""

    def send(self, sequence: int) -> int:
        return self._start(self._of(sequence))


class KeepsNothing(Carried):
    pool = NotKept


FOREIGN = (Foreign("parcels:Carried", ("parcels",), "each byte of a parcel is found by multiplication"),)
WRONG = {"parcels:LeavesOut": ["MOVE-1"], "parcels:ForgetsRanks": ["MOVE-16"], "parcels:KeepsNothing": ["MOVE-19"]}
