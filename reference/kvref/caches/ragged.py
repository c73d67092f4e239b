"""The ragged cache: sequences of unequal lengths in one block, padded on one side to the longest of them.

Over a window of W rows a sequence is longer than the rows that are kept of it. Before a feed appends its rows, it
lets go of all but the newest W-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kvref.abilities.attention import Seen, attended
from kvref.abilities.snapshot import Snapshot
from kvref.cite import cite, uncited
from kvref.memory import forms, meter
from kvspec.contract import Pair
from kvspec.geometry import Array, Config, fits
from kvspec.masks import Causal, Logical, Window
from kvspec.refusals import common as refusals
from kvspec.refusals import ragged as refusals_ragged

Pieces = Sequence[Pair]
"""The rows of one sequence, `[kv_heads, n, dim]`, from where they lie in several parts."""


class Ragged:
    """The block is `[sequences, kv_heads, width, dim]`; on the left or on the right of a sequence's rows lies
    padding."""

    kind = "ragged"

    def __init__(self, config: Config) -> None:
        if not refusals.valid(config):
            raise refusals.config("CACHE-3", self.kind, config)
        cite("RAGGED-2")
        self.config, self.kept = config, forms.Kept(config)
        self._lay([[]] * config.batch, [0] * config.batch)

    def _lay(self, sequences: Sequence[Pieces], lengths: Sequence[int]) -> None:
        """Replace the sequences by these rows of each and these lengths, in a new block."""
        cite("RAGGED-6", "RAGGED-7", "RAGGED-24")
        self.lengths = list(lengths)
        self.held = [sum(piece.keys.shape[1] for piece in pieces) for pieces in sequences]
        self.width = max(self.held)
        self.block = Pair(*(self._laid(kind, sequences) for kind in "kv"))
        self.fed: Array | None = None

    def _laid(self, kind: str, sequences: Sequence[Pieces]) -> Array:
        """Keys or values of the new block."""
        row = self.kept.none()["kv".index(kind)]
        block = meter.allocated((len(sequences), row.shape[1], self.width, row.shape[3]), row.dtype)
        for s, pieces in enumerate(sequences):
            at = self._start(s)
            for piece in pieces:
                rows = piece["kv".index(kind)]
                meter.write(block[s, :, at : at + rows.shape[1]], rows)
                at += rows.shape[1]
        return block

    def _before(self, width: int, n: int) -> int:
        """The columns of padding before n rows in a block of this width."""
        return width - n if self.config.padding == "left" else 0

    def _start(self, sequence: int) -> int:
        """The column of a sequence's first row."""
        return self._before(self.width, self.held[sequence])

    def _rows(self, sequence: int, older: int = 0, newer: int = 0) -> Pair:
        """The rows that are kept of a sequence without a copy, but for so many of the oldest and of the newest."""
        start, held = self._start(sequence), self.held[sequence]
        return Pair(*(meter.resident(a[sequence, :, start + older : start + held - newer]) for a in self.block))

    def _passed(self, sequence: int) -> int:
        """How many of the rows that are kept of a sequence its next query will not see."""
        window = self.config.window
        return 0 if window is None else max(0, self.held[sequence] - (window - 1))

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        """Append a padded block `[sequences, kv_heads, n, dim]`; a sequence owns as many columns as it has rows."""
        new, columns = Pair(keys, values), self._demand_block(keys, values, lengths)
        cite("RAGGED-3", "RAGGED-4", "RAGGED-5", "RAGGED-8", *([] if any(lengths) else ["RAGGED-11"]))
        owned = [self._before(columns, n) for n in lengths]
        parts = [_part(new, s, at, lengths[s]) for s, at in enumerate(owned)]
        kept = [self.kept.encoded(part, quiet=not part.keys.size) for part in parts]
        before = [(self._rows(s, self._passed(s)) if n else self._rows(s)) for s, n in enumerate(lengths)]
        grown = [old + n for old, n in zip(self.lengths, lengths, strict=True)]
        self._lay(list(zip(before, kept, strict=True)), grown)
        self.fed = self._positions(lengths, columns)

    def _demand_block(self, keys: Array, values: Array, lengths: Sequence[int]) -> int:
        """The columns of a block; refuse one of another geometry, or lengths that it cannot have."""
        if not fits(self.config.changed(batch=len(self.lengths)), Pair(keys, values)):
            raise refusals.rows("CACHE-2", self.config.changed(batch=len(self.lengths)), keys, values)
        columns = int(keys.shape[2])
        if len(lengths) != len(self.lengths) or not all(0 <= n <= columns for n in lengths):
            raise refusals_ragged.lengths("RAGGED-9", list(lengths), len(self.lengths), columns)
        return columns

    def attend_block(self, queries: Array, keys: Array, values: Array, lengths: Sequence[int]) -> Array:
        """Feed a block, and have its queries `[sequences, heads, n, k_dim]` attend. In padding the output is 0."""
        self._demand_queries(queries, self._demand_block(keys, values, lengths))
        self.feed(keys, values, lengths)
        cite("RAGGED-36", "RAGGED-37", "ATTN-44")
        forms.cite_attended(self.config)
        output = np.zeros((*queries.shape[:3], self.config.v_dim), np.float32)
        for s, n in enumerate(lengths):
            first = self._before(queries.shape[2], n)
            own = (slice(s, s + 1), slice(None), slice(first, first + n))
            if n:
                output[own] = self._answered(s, queries[own])
        return output

    def _demand_queries(self, queries: Array, columns: int) -> None:
        """Refuse queries that are not one for each column and head, of as many heads as can share the rows'."""
        wanted = len(self.lengths), "heads", columns, self.config.k_dim
        fits = queries.ndim == 4 and all(
            w in ("heads", size) for size, w in zip(queries.shape, wanted, strict=True)
        )
        if (
            not fits
            or queries.dtype != np.float32
            or not queries.shape[1]
            or queries.shape[1] % self.config.kv_heads
        ):
            raise refusals_ragged.queries("RAGGED-38", queries, wanted)

    def _answered(self, sequence: int, queries: Array) -> Array:
        """What the queries of a sequence's newest rows make of the rows up to their own, or in their window."""
        window = self.config.window
        cite(*([] if window is None else ["RAGGED-31"]))
        held = self.kept.decoded(Pair(*(a[None] for a in self._rows(sequence))))
        mask: Logical = (Causal(), *([] if window is None else [Window(window)]))
        with uncited():
            return attended(queries, held, Seen(mask, held.keys.shape[2], self.lengths[sequence]), 1)

    def _positions(self, lengths: Sequence[int], columns: int) -> Array:
        """The position of each row of a block that was fed last, -1 for padding."""
        positions = np.full((len(lengths), columns), -1)
        for s, n in enumerate(lengths):
            first = self._before(columns, n)
            positions[s, first : first + n] = range(self.lengths[s] - n, self.lengths[s])
        return positions

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest rows of each sequence; if one sequence has fewer, change nothing."""
        right = len(counts) == len(self.lengths)
        if not right or not all(0 <= count <= self.lengths[s] for s, count in enumerate(counts)):
            raise refusals_ragged.trim("RAGGED-15", list(counts), self.lengths)
        self._demand_kept(counts)
        cite("RAGGED-14")
        cut = [n - count for n, count in zip(self.lengths, counts, strict=True)]
        self._lay([[self._rows(s, newer=count)] for s, count in enumerate(counts)], cut)

    def _demand_kept(self, counts: Sequence[int]) -> None:
        """Refuse to drop a row of a sequence that has outgrown its window."""
        window = self.config.window
        if window is None:
            return
        if any(count and n > window for count, n in zip(counts, self.lengths, strict=True)):
            raise refusals_ragged.behind("RAGGED-34", list(counts), self.lengths, window)
        cite("RAGGED-34")

    def _copied(self, sources: Iterable[tuple[Ragged, int]]) -> None:
        """Replace the sequences by copies of these, each a cache and the number of a sequence of it."""
        found = list(sources)
        self._lay([[cache._rows(s)] for cache, s in found], [cache.lengths[s] for cache, s in found])

    def filter(self, order: Sequence[int]) -> None:
        """Keep these sequences, in this order."""
        if not order or not all(0 <= s < len(self.lengths) for s in order):
            raise refusals_ragged.order("RAGGED-19", list(order), len(self.lengths))
        cite("RAGGED-16")
        self._copied((self, s) for s in order)

    def reorder(self, order: Sequence[int]) -> None:
        """Put a sequence in each sequence's place."""
        if len(order) != len(self.lengths):
            raise refusals_ragged.beams("RAGGED-19", list(order), len(self.lengths))
        cite("RAGGED-17")
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Repeat each sequence several times, the copies side by side."""
        if times < 1:
            raise refusals_ragged.times("RAGGED-19", times)
        cite("RAGGED-18")
        self._copied((self, s) for s in range(len(self.lengths)) for _ in range(times))

    def extend(self, other: Any) -> None:
        """Add copies of another cache's sequences."""
        self._demand("extend", "a ragged cache", other, other.kind == self.kind)
        cite("RAGGED-20")
        both = (self, other)
        self._copied((cache, s) for cache in both for s in range(len(cache.lengths)))

    def join(self, others: Sequence[Any]) -> None:
        """Make copies of the rows of growing caches the sequences."""
        for other in others:
            self._demand("join", f"{self._single} caches", other, self._alone(other))
        cite("RAGGED-21")
        self._lay([_in_order(other) for other in others], [other.offset for other in others])

    def extract(self, sequence: int, into: Any) -> None:
        """Copy a sequence's rows to a growing cache."""
        if not 0 <= sequence < len(self.lengths):
            raise refusals_ragged.sequence("RAGGED-19", sequence, len(self.lengths))
        self._demand("extract", f"a {self._single} cache", into, self._alone(into))
        cite("RAGGED-22", "RAGGED-24")
        rows = Pair(*(a[None] for a in self._rows(sequence)))
        length, held = self.lengths[sequence], self.held[sequence]
        with uncited():
            into.free()
            if held:
                into.restore(Snapshot(into.kind, into.config, rows, length - held, length, held), length)

    @property
    def _single(self) -> str:
        """The kind of the caches of one sequence that it exchanges rows with."""
        return "growing" if self.config.window is None else "ring"

    def _alone(self, other: Any) -> bool:
        """Whether it is such a cache of one sequence, in no round of speculation."""
        return other.kind == self._single and other.config.batch == 1 and not other.in_round

    def _demand(self, what: str, wanted: str, other: Any, right: bool) -> None:
        """Refuse a cache of the wrong kind, or of other heads, widths, dtype, form or window."""
        names = ("kv_heads", "k_dim", "v_dim", "dtype", "form", "window")
        if not right or any(getattr(other.config, name) != getattr(self.config, name) for name in names):
            raise refusals_ragged.other("RAGGED-23", what, wanted, other.config)

    def sequences(self) -> list[int]:
        """The length of each sequence."""
        return list(self.lengths)

    def read_sequence(self, sequence: int) -> Pair:
        """Copies of the rows of a sequence that its next query will see, `[kv_heads, n, dim]`."""
        cite(*([] if self.config.window is None else ["RAGGED-32"]))
        rows = self._rows(sequence, self._passed(sequence))
        return self.kept.decoded(Pair(*(meter.fetched(a) for a in rows)))

    def positions(self) -> Array | None:
        """The position of each row of the last block; None where no block was fed since."""
        return self.fed

    def history(self) -> Pair:
        """A copy of the block."""
        return self.kept.decoded(Pair(*(meter.fetched(a) for a in self.block)))

    def starts(self) -> list[int]:
        """The column of each sequence's first row."""
        return [self._start(s) for s in range(len(self.lengths))]

    def holds(self) -> list[int]:
        """How many rows are kept of each sequence."""
        cite("RAGGED-33")
        return self.held.copy()

    def mask(self) -> Array:
        """Each query's own sequence, up to itself and as far back as its window: `[sequences, 1, n, width]`."""
        assert self.fed is not None
        gone = np.array(self.lengths) - np.array(self.held)
        starts = np.array([self._start(s) for s in range(len(self.held))])
        place = np.arange(self.width) - starts[:, None, None]
        position, queries = place + gone[:, None, None], self.fed[:, :, None]
        seen = (place >= 0) & (position <= queries)
        if self.config.window is not None:
            cite("RAGGED-31")
            seen &= position > queries - self.config.window
        return np.asarray(seen)[:, None]


def _in_order(cache: Any) -> Pieces:
    """The rows of a cache of one sequence, the oldest first: those of a ring lie in two pieces once it wrapped."""
    if cache.kind == "growing":
        ends = [(0, cache.offset)]
    else:
        ends = [(cache.index % max(1, cache.buffered), cache.buffered), (0, cache.index % max(1, cache.buffered))]
    return [Pair(*(a[0] for a in cache.rows.part(*each))) for each in ends]


def _part(block: Pair, sequence: int, first: int, n: int) -> Pair:
    """The columns of a block that a sequence owns."""
    return Pair(*(a[sequence, :, first : first + n] for a in block))
