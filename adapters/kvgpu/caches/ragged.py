"""The ragged cache on a device. All sequences lie in one block, and the host knows how long each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kvgpu.caches.attention import Runs
from kvgpu.caches.attention_ragged import AttendingBlocks
from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.cache_rows import acceptable, fitting
from kvgpu.memory.layout import Geometry, Place, Span, move, replace
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import common as refusals
from kvspec.refusals import ragged as refusals_ragged


class Run(NamedTuple):
    """Some rows of one sequence that lie side by side, from slot `first` of a place on."""

    place: Place
    first: int
    rows: int


class Ragged(AttendingBlocks):
    """Sequence s has its rows in group s, the newest `held[s]` of `lengths[s]`, in the columns from `starts_[s]` on
    of a block whose first column is slot `at`. There are as many slots as the steps that hold the most rows. Over
    a window there is one step more, in which the block moves on. Before the first feed there are none."""

    kind = "ragged"

    def __init__(self, config: Config, space: Workspace) -> None:
        if not acceptable(config):
            raise refusals.config("CACHE-3", self.kind, config)
        row_forms.demand(config)
        self.config, self.space = config, space
        self.one = Geometry.of(config.changed(batch=1))
        self.rows: Rows | None = None
        self._now([0] * config.batch, [0] * config.batch, 0)

    def _now(self, lengths: Sequence[int], held: Sequence[int], at: int) -> None:
        """Set the lengths, and where rows are; the block that was fed last no longer counts as the newest."""
        self.lengths, self.held, self.at = list(lengths), list(held), at
        self.starts_ = self._starts(held)
        self.fed: tuple[list[range], int] | None = None

    def _starts(self, held: Sequence[int]) -> list[int]:
        width = max(held)
        return [width - n if self.config.padding == "left" else 0 for n in held]

    def _seen(self, sequence: int) -> int:
        """How many of its rows the next query of a sequence sees."""
        held, window = self.held[sequence], self.config.window
        return held if window is None else min(held, window - 1)

    def _group(self, place: Place, group: int) -> Place:
        """The slots of one sequence, in a place that holds several."""
        before = group * self.config.kv_heads * place.slots
        keys_at = place.keys_at + before * self.one.k_bytes
        return replace(place, keys_at=keys_at, values_at=place.values_at + before * self.one.v_bytes)

    def _first(self, sequence: int) -> int:
        """The slot of a sequence's first row."""
        return self.at + self.starts_[sequence]

    def _runs(self, sequence: int, older: int = 0, newer: int = 0) -> list[Run]:
        """The rows of a sequence, without so many of the oldest and of the newest."""
        if self.rows is None:
            return []
        rows = self.held[sequence] - older - newer
        return [Run(self._group(self.rows.place, sequence), self._first(sequence) + older, rows)]

    def _rebuild(self, sequences: Sequence[Sequence[Run]], lengths: Sequence[int]) -> None:
        """A new block of these rows of sequences that are so long; one launch for each run."""
        held = [sum(run.rows for run in runs) for runs in sequences]
        made, starts = self._allocated(len(held), max(held)), self._starts(held)
        for group, runs in enumerate(sequences):
            at = starts[group]
            for run in runs:
                self._move(run, self._group(made.place, group), at)
                at += run.rows
        if self.rows is not None:
            self.rows.release()
        self.rows = made
        self._now(lengths, held, 0)

    def _allocated(self, groups: int, width: int) -> Rows:
        steps = -(-width // self.config.step) + (self.config.window is not None)
        slots = steps * self.config.step
        return Rows(self.space.runtime, Geometry.of(self.config.changed(batch=groups)), slots)

    def _move(self, run: Run, to: Place, at: int) -> None:
        source = Span(run.place, run.first, 0, run.rows)
        move(self.space.runtime, self.one, run.rows, source, Span(to, at, 0, run.rows))

    def feed(self, keys: Any, values: Any, lengths: Sequence[int]) -> None:
        """Append the columns of a block that sequences own; in place, if no row has to move for padding."""
        columns = self.demand_block(keys, values, lengths)
        owned = self.owned(lengths, columns)
        if any(lengths):
            block = Codec(self.space, self._batch()).staged(keys, values)
            new = [[Run(self._group(block, s), each.start, len(each))] for s, each in enumerate(owned)]
            self._append(new, list(lengths))
        self.fed = owned, columns

    def _batch(self) -> Config:
        """The geometry of all sequences that there are."""
        return self.config.changed(batch=len(self.lengths))

    def demand_block(self, keys: Any, values: Any, lengths: Sequence[int]) -> int:
        """Count the columns of a block. Refuses a block that does not fit, and lengths that it does not have."""
        if not fitting(self._batch(), keys, values):
            raise refusals.rows("CACHE-2", self._batch(), keys, values)
        columns = int(keys.shape[2])
        if len(lengths) != len(self.lengths) or min(lengths) < 0 or max(lengths) > columns:
            raise refusals_ragged.lengths("RAGGED-9", list(lengths), len(self.lengths), columns)
        return columns

    def owned(self, lengths: Sequence[int], columns: int) -> list[range]:
        """The columns of a block that each sequence owns."""
        left = self.config.padding == "left"
        return [range(columns - n, columns) if left else range(n) for n in lengths]

    def _append(self, new: Sequence[Sequence[Run]], more: Sequence[int]) -> None:
        """Write new rows behind those that their first query sees. A sequence without new rows keeps all it has."""
        lengths = [n + m for n, m in zip(self.lengths, more, strict=True)]
        older = [self.held[s] - self._seen(s) if m else 0 for s, m in enumerate(more)]
        held = [n - o + m for n, o, m in zip(self.held, older, more, strict=True)]
        at, ends = self._begin(older, held), [self._first(s) + n for s, n in enumerate(self.held)]
        if self.rows is None or at is None or max(map(sum, zip(ends, more, strict=True))) > self.rows.slots:
            self._rebuild([[*self._runs(s, older[s]), *runs] for s, runs in enumerate(new)], lengths)
            return
        for s, runs in enumerate(new):
            for run in runs:
                self._move(run, self._group(self.rows.place, s), ends[s])
        self._now(lengths, held, at)

    def _begin(self, older: Sequence[int], held: Sequence[int]) -> int | None:
        """Give the slot where a block begins if sequences hold `held` rows, without the `older` oldest, and each
        row stays in its slot. None if rows would have to move."""
        found = {self._first(s) + older[s] - start for s, start in enumerate(self._starts(held))}
        return found.pop() if len(found) == 1 else None

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest rows of each sequence; rows move only where their padding changes."""
        right = len(counts) == len(self.lengths)
        if not right or any(c < 0 or c > n for c, n in zip(counts, self.lengths, strict=True)):
            raise refusals_ragged.trim("RAGGED-15", list(counts), self.lengths)
        window = self.config.window
        if window is not None and any(c and n > window for c, n in zip(counts, self.lengths, strict=True)):
            raise refusals_ragged.behind("RAGGED-34", list(counts), self.lengths, window)
        lengths, held = ([n - c for n, c in zip(each, counts, strict=True)] for each in (self.lengths, self.held))
        at = self._begin([0] * len(held), held)
        if at is not None:
            self._now(lengths, held, at)
        else:
            self._rebuild([self._runs(s, newer=count) for s, count in enumerate(counts)], lengths)

    def filter(self, order: Sequence[int]) -> None:
        """Keep these sequences, in this order."""
        if not order or min(order) < 0 or max(order) >= len(self.lengths):
            raise refusals_ragged.order("RAGGED-19", list(order), len(self.lengths))
        self._rebuild([self._runs(s) for s in order], [self.lengths[s] for s in order])

    def reorder(self, order: Sequence[int]) -> None:
        """Make a new block whose sequences come from these places."""
        if len(order) != len(self.lengths):
            raise refusals_ragged.beams("RAGGED-19", list(order), len(self.lengths))
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Repeat each sequence this many times."""
        if times < 1:
            raise refusals_ragged.times("RAGGED-19", times)
        self.filter([s for s in range(len(self.lengths)) for _ in range(times)])

    def extend(self, other: Any) -> None:
        """Copy another cache's sequences behind the present ones."""
        if other.kind != self.kind or not self._alike(other):
            raise refusals_ragged.other("RAGGED-23", "extend", "a ragged cache", other.config)
        runs = [cache._runs(s) for cache in (self, other) for s in range(len(cache.lengths))]
        self._rebuild(runs, self.lengths + other.lengths)

    def join(self, others: Sequence[Any]) -> None:
        """Become the rows of growing caches, or rings, each a sequence."""
        for other in others:
            self._demand_alone("join", f"{self._single} caches", other)
        self._rebuild([_in_order(other) for other in others], [other.offset for other in others])

    def extract(self, sequence: int, into: Any) -> None:
        """Put the rows of a sequence into a growing cache or a ring. For a growing cache they pass through scratch
        space, where they lie side by side. For a ring they pass through a buffer, which then is the ring's own."""
        if sequence < 0 or sequence >= len(self.lengths):
            raise refusals_ragged.sequence("RAGGED-19", sequence, len(self.lengths))
        self._demand_alone("extract", f"a {self._single} cache", into)
        if self.config.window is None:
            self._to_growing(sequence, into)
        else:
            self._to_ring(sequence, into)

    def _to_growing(self, sequence: int, into: Any) -> None:
        made = type(into)(into.config, into.space)
        for run in self._runs(sequence):
            there = self.space.other(self.one, run.rows)
            self._move(run, there, 0)
            if run.rows:
                made._write(there, 0)
        into.free()
        into.store, into.offset, into.written = made.store, made.offset, made.written

    def _to_ring(self, sequence: int, into: Any) -> None:
        held = self.held[sequence]
        if held == 0:
            into.free()
            return
        rows = into.store.allocated(max(into.window, held))
        for run in self._runs(sequence):
            self._move(run, rows.place, 0)
        into.free()
        into.become(rows, self.lengths[sequence], held, held)

    @property
    def _single(self) -> str:
        """The kind of the caches of one sequence that rows come from and go to."""
        return "growing" if self.config.window is None else "ring"

    def _demand_alone(self, what: str, wanted: str, other: Any) -> None:
        """Refuse all but such caches of one sequence that have this geometry and are in no round."""
        fits = other.kind == self._single and other.config.batch == 1 and self._alike(other)
        if not fits or other.in_round:
            raise refusals_ragged.other("RAGGED-23", what, wanted, other.config)

    def _alike(self, other: Any) -> bool:
        """Tell whether rows of the other cache are like those of this one."""
        a, b = self.config, other.config
        names = ("kv_heads", "k_dim", "v_dim", "dtype", "form", "window")
        return all(getattr(a, name) == getattr(b, name) for name in names)

    def sequences(self) -> list[int]:
        """The length of each sequence."""
        return self.lengths.copy()

    def read_sequence(self, sequence: int) -> Pair:
        """Download the rows of a sequence that its next query sees, `[kv_heads, n, dim]`."""
        n = self._seen(sequence)
        found = self._read(sequence, 1, self._first(sequence) + self.held[sequence] - n, n)
        return Pair(found.keys[0], found.values[0])

    def lying(self, sequence: int) -> Runs:
        """Where the rows of a sequence lie as they are kept."""
        assert self.rows is not None
        place = self._group(self.rows.place, sequence)
        return Runs(place, self.config.kv_heads * place.slots, self._first(sequence))

    def readable(self, sequence: int) -> Runs:
        """Where they lie as they are read: rows in a form are decoded to another place."""
        lying, held = self.lying(sequence), self.held[sequence]
        if self.config.form is None:
            return lying
        keys_at = lying.place.keys_at + lying.start * self.one.k_bytes
        values_at = lying.place.values_at + lying.start * self.one.v_bytes
        codec = Codec(self.space, self.config.changed(batch=1))
        place = codec.decoded(replace(lying.place, keys_at=keys_at, values_at=values_at), held)
        return Runs(place, self.config.kv_heads * place.slots)

    def history(self) -> Pair:
        """Download the block, `[sequences, kv_heads, width, dim]`."""
        return self._read(0, len(self.lengths), self.at, max(self.held))

    def _read(self, first: int, groups: int, start: int, n: int) -> Pair:
        """Download n slots of some groups, from slot `start` on, as they are read."""
        config = self.config.changed(batch=groups)
        if self.rows is None or n == 0:
            return Pair(*(np.empty(config.shape(kind, 0), DTYPES[config.dtype]) for kind in "kv"))
        if self.space.checks:
            self.rows.check_guards()
        whole = self._group(self.rows.place, first)
        ends = whole.keys_at + start * self.one.k_bytes, whole.values_at + start * self.one.v_bytes
        place = replace(whole, *ends)
        if config.form is not None:
            place = Codec(self.space, config).decoded(place, n)
        return Pair(*(self._lines(kind, config, place, n) for kind in "kv"))

    def _lines(self, kind: str, config: Config, place: Place, n: int) -> Array:
        """Download the first n slots of a place, one line of bytes for each head."""
        dtype, shape = DTYPES[config.dtype], config.shape(kind, n)
        size = shape[3] * dtype.itemsize
        block, at = (place.keys, place.keys_at) if kind == "k" else (place.values, place.values_at)
        lines = self.space.runtime.download(block, at, n * size, shape[0] * shape[1], place.slots * size)
        rows: Array = lines.view(dtype).reshape(shape)
        return rows

    def starts(self) -> list[int]:
        """The column of each sequence's first row."""
        return self.starts_.copy()

    def holds(self) -> list[int]:
        """How many rows each sequence has here."""
        return self.held.copy()

    def positions(self) -> Array | None:
        """The position of each row of the last block, -1 for padding; None where none was fed since."""
        if self.fed is None:
            return None
        owned, columns = self.fed
        found = np.full((len(owned), columns), -1)
        for s, mine in enumerate(owned):
            found[s, mine.start : mine.stop] = np.arange(self.lengths[s] - len(mine), self.lengths[s])
        return found

    def mask(self) -> Array:
        """Show to each query of the last block the columns of its sequence up to its own, in its window."""
        positions = self.positions()
        assert positions is not None
        found = np.zeros((*positions.shape, max(self.held)), bool)
        for s, q in zip(*np.nonzero(positions >= 0), strict=True):
            start = self.starts_[s]
            own = start + positions[s, q] - (self.lengths[s] - self.held[s])
            found[s, q, max(start, own + 1 - (self.config.window or own + 1)) : own + 1] = True
        return found[:, None]


def _in_order(cache: Any) -> list[Run]:
    """Where the rows of a cache of one sequence lie, the oldest first: those of a ring in two runs."""
    rows = cache.store.rows
    if rows is None or cache.offset == 0:
        return []
    if cache.kind == "growing":
        return [Run(rows.place, 0, cache.offset)]
    place, first, turn, wrap = cache.newest(cache.filled)
    return [Run(place, first + turn, wrap - turn), Run(place, first, turn)]
