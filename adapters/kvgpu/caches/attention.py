"""Strict attention on a device: the same bits as the chapter ATTN defines, wherever the rows lie.

An attend has two steps, so that nothing changes before everything is ready:

    demand(config, Fit(front, n, rows_held), queries, how, out)              # of `caches.queries`: refuses
    asking = asked(how.through, window)                                      # of `caches.queries`: what queries see
    ready = prepare(space, config, queries, asking, how.splits, most, out)   # allocates, and uploads queries
    ...                                                                      # append the rows
    return ready.answer(rows, positions)                                     # two launches; the output

`rows` says where rows lie: `Runs` (growing caches, rings in place, stores, sequences of a batch, buckets) or
`Pages` (through block tables). One call answers all entries of a leading axis: layers, a batch, sequences, or their
product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from kvgpu.caches.queries import FLOAT, Asking
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows, fetched
from kvgpu.memory.layout import Geometry, Place, Span, move
from kvgpu.memory.row_groups import MOST_PARTS
from kvgpu.runtime import Block, ReadingForms, Work
from kvspec.geometry import DTYPES, Array, Config

TILE = 32
"""Positions of a tile: part of the definition, and of the kernels."""

LOG2E = 1.4426950408889634
"""Log2 of e: scores are counted in powers of 2."""

FAR = 1 << 62
"""A number above every number of rows: all rows then lie in one run."""


class Positions(NamedTuple):
    """The cache holds the rows of positions `first` to `end - 1`; the n queries stand at the last n of them.

    Where `lengths` is given, a block of i64 on the device, `end` is not read: the end of entry e is number
    `at + e * stride` of that block. The kernels read it when they run, so captured work stays valid.
    """

    first: int = 0
    end: int = 0
    lengths: Block | None = None
    at: int = 0
    stride: int = 1


class Runs(NamedTuple):
    """Rows in one run of slots, or in two. Counted from `Positions.first`, the first `before` rows lie in the
    slots from `start` on. The others lie in those from `then` on.

    Head h of entry e begins `e * entry + h * place.slots` rows behind where `place` begins; `entry` is in rows,
    usually `kv_heads * place.slots`. Slots that hold no position are never read.

    - Growing caches, stores, sequences of a batch: `Runs(place, entry)`.
    - A ring in place, where a span of its slots begins with the oldest row: `Runs.of(span, entry)`.
    - A bucket, `past` rows in front and the new ones from slot `upper` on: `Runs(place, entry, 0, past, upper)`.
    """

    place: Place
    entry: int
    start: int = 0
    before: int = FAR
    then: int = 0

    @classmethod
    def of(cls, span: Span, entry: int) -> Runs:
        """A ring in place, its oldest row first."""
        return cls(span.place, entry, span.first + span.turn, span.wrap - span.turn, span.first)


class Pages(NamedTuple):
    """Rows in pages of `place.slots` rows: position p lies in page `table[p // place.slots]`, in its slot
    `p % place.slots`.

    Head h of page g begins `g * page + h * place.slots` rows behind where `place` begins; `page` is in rows,
    usually `kv_heads * place.slots`. The table of entry e is the i32 numbers of `tables`, a block on the device,
    from `at + e * stride` on. Only numbers that lead to a seen row are read.
    """

    place: Place
    page: int
    tables: Block
    at: int = 0
    stride: int = 0


def prepare(
    space: Workspace,
    config: Config,
    queries: Any,
    asking: Asking,
    splits: int,
    most: int,
    out: Any = None,
    sinks: tuple[float, ...] | None = None,
) -> Ready:
    """Put on the device what an attend needs beside its rows. Nothing is launched.

    `config` says kv_heads, k_dim, v_dim and dtype of the rows. `queries` are f32 `[entries, heads, n, k_dim]`, or
    with several axes in front, which are the entries in order; on the host, or placed on the device. `most` is how
    many positions there will be at most (the end, or the capacity where ends are on the device). The output `[...,
    heads, n, v_dim]` is `out` if it is given: an f32 array of the host, or one placed on the device, written in
    place. Otherwise it is new, and lies where the queries are. `sinks` are the learned sinks of the query heads,
    if there are any. The caller has refused what does not fit. Raises MemoryError.
    """
    *front, heads, n, _ = queries.shape
    size = Size(prod(front), heads, n, max(1, min(splits, -(-most // TILE))))
    shape = *queries.shape[:-1], config.v_dim
    partials = space.scratch("partials", size.units * (config.v_dim + 2) * FLOAT.itemsize)
    given = _there(space, "queries", queries)
    added = _added(space, asking) if asking.added else given
    host = not isinstance(queries if out is None else out, DeviceRows)
    target = out if isinstance(out, DeviceRows) else room(space, shape, host)
    learned = None if sinks is None else _there(space, "sinks", np.array(sinks, FLOAT))
    return Ready(space, config, size, given, asking, added, partials, target, host, out, learned)


def _there(space: Workspace, name: str, array: Any) -> DeviceRows:
    """Give the place of an array on the device; upload an array of the host into scratch space."""
    if isinstance(array, DeviceRows):
        return array
    there = DeviceRows(space.runtime, space.scratch(name, array.nbytes), array.shape, array.dtype)
    put(array, there)
    return there


def _added(space: Workspace, asking: Asking) -> DeviceRows:
    """Upload the arrays that are added to scores, but for what a kernel writes at their end."""
    arrays = _packed(asking.added)
    block = space.scratch("added", arrays.nbytes)
    there = DeviceRows(space.runtime, block, arrays.shape, arrays.dtype)
    put(arrays[: arrays.size - asking.written], there)
    return there


def put(array: Any, there: DeviceRows) -> None:
    """Copy an array to the beginning of a block: from the host by upload."""
    if isinstance(array, DeviceRows):
        geometry = Geometry(1, prod(array.shape) * array.dtype.itemsize, 0)
        source = Place(array.block, array.block, array.at, array.at, 1)
        move(there.runtime, geometry, 1, source.span(), Place.packed(there.block, geometry, 1).span())
    else:
        there.runtime.upload(np.ascontiguousarray(array), there.block)


def _packed(arrays: tuple[Array, ...]) -> Array:
    """Pack arrays: four i32 numbers for each (entries, heads, width, where elements begin), then all elements."""
    begins = np.cumsum([4 * len(arrays), *(a.size for a in arrays)])
    heads = [(a.shape[0], a.shape[1], a.shape[3], at) for a, at in zip(arrays, begins, strict=False)]
    elements = (np.ascontiguousarray(a).view(np.int32).ravel() for a in arrays)
    return np.concatenate([np.array(heads, np.int32).ravel(), *elements])


def room(space: Workspace, shape: tuple[int, ...], host: bool) -> DeviceRows:
    """Give the place where an output is written: scratch space if it goes to the host, else new memory."""
    nbytes = prod(shape) * FLOAT.itemsize
    block = space.scratch("output", nbytes) if host else space.runtime.allocate(nbytes)
    return DeviceRows(space.runtime, block, shape, FLOAT)


class Size(NamedTuple):
    """Entries, query heads, queries of each, splits of each query's tiles."""

    entries: int
    heads: int
    queries: int
    splits: int

    @property
    def units(self) -> int:
        """Count the partial results."""
        return prod(self)


@dataclass(frozen=True)
class Ready:
    """An attend that lacks only its rows: see `prepare`. `added` holds the arrays of a mask, and is any block if
    there are none. `out` is the caller's array, or None. `sinks` are those of the query heads, or None."""

    space: Workspace
    config: Config
    size: Size
    queries: DeviceRows
    asking: Asking
    added: DeviceRows
    partials: Block
    target: DeviceRows
    host: bool
    out: Any
    sinks: DeviceRows | None = None

    def answer(self, rows: Runs | Pages, positions: Positions) -> Any:
        """Launch, and give the output: `out` if it was given, else a new array where the queries are."""
        self.launch(rows, positions)
        return self.output()

    def output(self) -> Any:
        """Give the output of the launches before."""
        if not self.host:
            return self.target if self.out is None else self.out
        found = fetched(self.target)
        if self.out is None:
            return found
        self.out[...] = found
        return self.out

    def launch(self, rows: Runs | Pages, positions: Positions) -> None:
        """Launch twice, and once more for sinks, and do nothing else, so that it may be captured."""
        self.leave_parts(rows, positions)
        self.join()

    def leave_parts(self, rows: Runs | Pages, positions: Positions, sinks: bool = True) -> None:
        """Launch what leaves the parts of all splits, with the learned sinks if it has some."""
        self._attend(rows, positions)
        if sinks and self.sinks is not None:
            self._sink(self.sinks)

    def _attend(self, rows: Runs | Pages, positions: Positions) -> None:
        entries, heads, queries, splits = self.size
        lie, tables, where = _lying(rows, self.queries.block)
        place, lengths = rows.place, positions.lengths or self.queries.block
        blocks = place.keys, place.values, self.queries.block, self.added.block, lengths, tables, self.partials
        work = Work(TILE, queries * splits, heads, min(entries, MOST_PARTS))
        numbers = *self._sizes(), *self._starts(place), place.slots, *_ends(positions), *self._mask(), *where
        self.space.runtime.launch(f"attend_{lie}_{kind(self.config)}", work, *blocks, *numbers)

    def _sizes(self) -> tuple[int, ...]:
        entries, heads, queries, splits = self.size
        bits = int(scale(self.config.k_dim).view(np.uint32))
        return entries, heads, self.config.kv_heads, queries, splits, self.config.k_dim, self.config.v_dim, bits

    def _starts(self, place: Place) -> tuple[int, int, int]:
        """Give where queries, keys and values begin, in elements; rows in a form begin at a byte."""
        size = DTYPES[self.config.dtype].itemsize if self.config.form is None else 1
        return self.queries.at // FLOAT.itemsize, place.keys_at // size, place.values_at // size

    def _mask(self) -> tuple[int, int, int]:
        """Tell whether the future is hidden, the window, and how many arrays are added to scores. -1 says that
        there are none, and that the parts are needed; a fast kernel does not use parts."""
        none = 0 if self.sinks is None else -1
        return int(self.asking.causal), self.asking.window, len(self.asking.added) or none

    def _sink(self, sinks: DeviceRows) -> None:
        _, heads, queries, splits = self.size
        units, width = self.size.units // splits, self.config.v_dim
        numbers = units, heads, queries, splits, width
        self.space.runtime.launch("attend_sinks", Work(1, units), self.partials, sinks.block, *numbers)

    def join(self) -> None:
        """Launch what joins the parts of all splits into outputs."""
        units, width = self.size.units // self.size.splits, self.config.v_dim
        sizes = units, self.size.splits, width, self.target.at // FLOAT.itemsize
        self.space.runtime.launch("attend_join", Work(width, units), self.partials, self.target.block, *sizes)


def kind(config: Config) -> str:
    """Say what rows are, in the name of the kernel that attends to them: their dtype, and their form if any."""
    return config.dtype if config.form is None else f"{config.dtype} {config.form}"


def in_form(ready: Any, config: Config) -> Ready | None:
    """Give an attend that reads the rows of a cache in their form, where they lie. None if they have none, or if
    the device has to decode them first: strict kernels, to which masks and learned sinks go, read no forms."""
    if config.form is None or not isinstance(ready, Ready) or ready.asking.added or ready.sinks is not None:
        return None
    runtime = ready.space.runtime
    reads = isinstance(runtime, ReadingForms) and runtime.reads_form(config)
    return replace(ready, config=config) if reads else None


def scale(k_dim: int) -> Any:
    """The factor of queries: log2(e) / sqrt(k_dim), computed in f64, rounded to f32."""
    return FLOAT.type(LOG2E / float(np.sqrt(np.float64(k_dim))))


def _lying(rows: Runs | Pages, none: Block) -> tuple[str, Block, tuple[int, ...]]:
    """Give how rows lie, the block tables (any block if there are none), and the arguments that say where."""
    if isinstance(rows, Pages):
        return "pages", rows.tables, (rows.page, rows.at, rows.stride)
    return "runs", none, (rows.entry, rows.start, rows.before, rows.then)


def _ends(positions: Positions) -> tuple[int, ...]:
    return positions.first, positions.end, int(positions.lengths is not None), positions.at, positions.stride
