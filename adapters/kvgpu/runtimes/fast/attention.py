"""Fast attention by a kernel that is compiled for a geometry: what is the same on every kind of device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from kvgpu import kernels
from kvgpu.caches.attention import Pages, Positions, Runs
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.runtime import Block, Runtime, Work
from kvspec.geometry import DTYPES

FLOAT = 4
"""Bytes of an f32."""


class Geometry(NamedTuple):
    """What a kernel is compiled for: how rows `lie`, the heads of queries and of rows, and how many `queries` read
    a row together."""

    dtype: str
    k_dim: int
    v_dim: int
    heads: int
    kv_heads: int
    lie: str = "runs"
    queries: int = 1
    form: str = ""
    """The form of rows that are read as this dtype; none for rows that are kept as they are read."""

    @property
    def group(self) -> int:
        """Give the number of query heads that share a kv head."""
        return self.heads // self.kv_heads

    @property
    def name(self) -> str:
        """Give the part of a kernel's name that says what it is compiled for."""
        parts = self.lie, self.dtype, self.k_dim, self.v_dim, self.group, self.queries
        formed = "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in self.form)
        return "_".join(map(str, (*parts, formed) if formed else parts))

    @property
    def size(self) -> int:
        """Give the bytes in which places of rows are counted: of an element, or 1 for rows in a form."""
        return 1 if self.form else DTYPES[self.dtype].itemsize


class FastDevice(Runtime, Protocol):
    """A runtime on which `workers` pieces of work keep the device busy."""

    workers: int

    def knows(self, kernel: str) -> bool:
        """Tell whether a kernel of that name can be launched."""


class Ragged(NamedTuple):
    """Entries that have different numbers of queries: entry e has those from number `starts[e]` to
    `starts[e + 1]` - 1. `starts` are entries + 1 i64 numbers on the device."""

    starts: Block
    entries: int


class Call(NamedTuple):
    """What is attended to, and where outputs go. Queries are `[entries, heads, n, k_dim]` and `out` is `[entries,
    heads, n, v_dim]`, both f32. If `ragged`, both are `[heads, n, dim]` with the queries of all entries.

    See `caches.attention` for where rows lie and where the queries stand. If `causal`, a query sees the positions
    up to its own, else all. If `window` is not 0, it sees only the newest `window` of those up to its own. `most`
    is the largest number of positions, where their end is on the device.
    """

    queries: DeviceRows
    rows: Runs | Pages
    positions: Positions
    out: DeviceRows
    causal: bool = True
    window: int = 0
    most: int | None = None
    ragged: Ragged | None = None

    @property
    def entries(self) -> int:
        """Give the number of entries."""
        return self.ragged.entries if self.ragged else self.queries.shape[0]

    @property
    def each(self) -> int:
        """Give the number of queries of each entry, or of all entries together if ragged."""
        return self.queries.shape[-2]

    @property
    def seen(self) -> int:
        """Count the positions that an entry's queries see, at most."""
        held = self.positions.end - self.positions.first if self.most is None else self.most
        return min(held, self.window + self.each) if self.window else held


class FastAttention(ABC):
    """Attention of f32 queries over rows, with all sums in f32. Query head h reads kv head h // (heads / kv_heads);
    scores are q k / sqrt(k_dim), and must be finite in f32 when multiplied by log2(e).

    A row is read for at most `queries` queries at once.
    """

    def __init__(self, runtime: FastDevice, geometry: Geometry) -> None:
        self.device, self.geometry = runtime, geometry
        self.size = geometry.size
        self._attend = self._learned()
        # Only runs that are split leave parts, and they have at most 2 * workers pieces.
        self._parts = runtime.allocate(2 * self.workers * self._part_bytes())

    @property
    def workers(self) -> int:
        """Give the number of pieces of this kernel's work that keep the device busy."""
        return self.device.workers

    @abstractmethod
    def _learned(self) -> str:
        """Compile the kernel, unless the runtime knows it, and give its name."""

    @abstractmethod
    def _part_bytes(self) -> int:
        """Count the bytes that one piece of work leaves to be joined."""

    @abstractmethod
    def _work(self, tasks: int) -> Work:
        """Give the size of a launch that does `tasks` pieces of work."""

    @abstractmethod
    def _dealt(self, runs: int, rows: int) -> tuple[int, tuple[int, ...]]:
        """Give the most pieces of work that `runs` runs of at most `rows` rows are split into, and the arguments
        by which the kernel splits them."""

    @abstractmethod
    def _join(self, out: DeviceRows, cells: int, splits: int) -> None:
        """Join the parts of `cells` queries, unless the kernel has done so itself."""

    def attend(self, call: Call) -> None:
        """Write the outputs: zeros where a query sees nothing. Only rows that a query sees are read. One launch or
        two and nothing else, which may be captured.
        """
        runs = self.geometry.kv_heads * self._reads(call)
        pieces, dealt = self._dealt(runs, call.seen)
        self._launch(call, pieces, (call.entries, self.geometry.kv_heads, call.each, *dealt))
        if pieces > runs:
            self._join(call.out, call.entries * self.geometry.heads * call.each, pieces // runs)

    def _reads(self, call: Call) -> int:
        """Count how often the rows of a kv head are read, over all entries. Raises ValueError for ragged queries
        if the kernel takes none."""
        if call.ragged:
            raise ValueError(f"{type(self).__name__} takes no ragged queries")
        return call.entries * self._runs(call.each)

    def _launch(self, call: Call, pieces: int, sizes: tuple[int, ...], *more: Block) -> None:
        """Launch the kernel for `pieces` pieces of work. `more` are blocks that only this kernel takes."""
        blocks, begins, ends = self._blocks(call, more), self._begins(call), _ends(call.positions)
        lies = call.rows.place.slots, *_lying(call.rows)
        numbers = *sizes, *begins, *lies, *ends, int(call.causal), call.window
        self._start(call, self._work(pieces), *blocks, *numbers)

    def _start(self, call: Call, work: Work, *args: Block | int) -> None:
        """Launch it with these arguments, and more that only this kernel takes."""
        self.device.launch(self._attend, work, *args)

    def _blocks(self, call: Call, more: tuple[Block, ...]) -> tuple[Block, ...]:
        place, out = call.rows.place, call.out.block
        lengths = call.positions.lengths or out
        tables = (call.rows.tables,) if isinstance(call.rows, Pages) else ()
        return call.queries.block, place.keys, place.values, lengths, self._parts, out, *more, *tables

    def _begins(self, call: Call) -> tuple[int, int, int, int]:
        """Give where queries, outputs, keys and values begin, in elements."""
        place, size = call.rows.place, self.size
        return call.queries.at // FLOAT, call.out.at // FLOAT, place.keys_at // size, place.values_at // size

    def _runs(self, count: int) -> int:
        """Count how often `count` queries read the rows of a kv head."""
        return -(-count // self.geometry.queries)


def _lying(rows: Runs | Pages) -> tuple[int, ...]:
    if isinstance(rows, Pages):
        return rows.page, rows.at, rows.stride
    return rows.entry, rows.start, rows.before, rows.then


def _ends(positions: Positions) -> tuple[int, ...]:
    return positions.first, positions.end, int(positions.lengths is not None), positions.at, positions.stride


def scale(k_dim: int) -> str:
    """Write the factor of scores, log2(e) / sqrt(k_dim), as C reads it."""
    return f"{float(np.float32(math.log2(math.e) / math.sqrt(k_dim))).hex()}f"


def kinds(geometry: Geometry) -> dict[str, str | int]:
    """Give the macros that say how rows are stored, and how they lie; in runs if none says so."""
    lies = {} if geometry.lie == "runs" else {geometry.lie.upper(): 1}
    return {f"ROW_{geometry.dtype.upper()}": 1, **lies}


def text(defined: Mapping[str, str | int], *names: str) -> str:
    """Write the texts of these names, with these macros defined before them."""
    return kernels.defines(defined) + "".join(map(kernels.text, names))
