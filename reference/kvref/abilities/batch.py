"""The batch of a store: many sequences in places of their own, which are kept for the next batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from kvref.cite import cite
from kvref.memory import forms, meter
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import common as refusals

SEQUENCES = 32
"""Sequences a batch may have, where the caller does not say how many."""

_addresses = count(1)
"""Every buffer that is allocated gets an address of its own."""


class Batch:
    """Row p of head h of layer l of sequence s is `keys[l][s, h, p]` and `values[l][s, h, p]`. It is live while p
    < `held[s][l]`. That is `lengths[s]`, unless a scatter of one layer left layer l behind."""

    def __init__(self, config: Config, places: int) -> None:
        assert config.layers is not None and config.max_len is not None
        self.layers, self.places = config.layers, places
        self.keys, self.values = (
            [_unwritten(places, row, config.max_len) for _ in range(config.layers)]
            for row in forms.Kept(config).none()
        )
        self.addresses = [next(_addresses) for _ in (*self.keys, *self.values)]
        self.lengths: list[int] = []
        self.held: list[list[int]] = []

    def begin(self, m: int) -> None:
        """Begin with m sequences of length 0."""
        self.lengths = [0] * m
        self.held = [[0] * self.layers for _ in range(m)]

    def lower(self, sequence: int, to: int) -> None:
        """Make `to` the length, and rows at and beyond it dead in every layer."""
        self.lengths[sequence] = to
        self.held[sequence] = [min(n, to) for n in self.held[sequence]]

    def write(self, sequence: int, layer: int, at: int, rows: Pair) -> None:
        """Put rows `[kv_heads, n, dim]`, as they are kept, into a sequence's place in one layer from `at` on."""
        end = at + rows.keys.shape[1]
        meter.write(self.keys[layer][sequence, :, at:end], rows.keys)
        meter.write(self.values[layer][sequence, :, at:end], rows.values)
        self.held[sequence][layer] = end


def _unwritten(places: int, row: Array, max_len: int) -> Array:
    """A buffer `[places, kv_heads, max_len, dim]` of NaN, for rows like these."""
    return meter.allocated((places, row.shape[1], max_len, row.shape[3]), row.dtype)


class Batching:
    """Mixin of a store: its batch. The store has `config`, `max_len`, `lengths_` (one a layer), and lists `keys`
    and `values`
    of arrays `[kv_heads, max_len, dim]`, one a layer."""

    config: Config
    kept: forms.Kept
    max_len: int
    lengths_: list[int]
    keys: list[Array]
    values: list[Array]
    batch_: Batch | None = None

    def batch(self, m: int, most: int | None = None) -> None:
        """Allocate for m sequences, all of length 0; `most` is how many are allowed, if not 32."""
        allowed = SEQUENCES if most is None else most
        if not 1 <= m <= allowed:
            raise refusals.batch_size("BATCH-2", m, allowed)
        if self.batch_ is None or m > self.batch_.places:
            self.batch_ = Batch(self.config, m)
        else:
            cite("BATCH-4")
        cite("BATCH-1", "BATCH-11")
        self.batch_.begin(m)

    def _batch(self, what: str) -> Batch:
        if self.batch_ is None:
            raise refusals.no_batch("BATCH-3", what)
        return self.batch_

    def sequences(self) -> list[int] | None:
        """The length of each sequence; None where there is no batch."""
        return None if self.batch_ is None else list(self.batch_.lengths)

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """Copies of the live rows of a sequence in a layer, `[kv_heads, n, dim]`."""
        batch = self._batch("read")
        live = slice(0, batch.held[sequence][layer])
        kept = Pair(*(a[layer][sequence, :, live].copy() for a in (batch.keys, batch.values)))
        return self.kept.decoded(kept)

    def addresses(self) -> list[int]:
        """Where the batch's buffers lie; empty where there is none."""
        return [] if self.batch_ is None else list(self.batch_.addresses)

    def batch_bytes(self) -> int:
        """Bytes of rows that the batch has allocated."""
        return 0 if self.batch_ is None else sum(a.nbytes for a in (*self.batch_.keys, *self.batch_.values))

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Copy the store's first n rows into a sequence's place, of one layer or of all, and set its length."""
        batch = self._batch("scatter")
        self._in_batch(batch, sequence)
        if layer is not None and not 0 <= layer < batch.layers:
            raise refusals.layer("BATCH-9", layer, batch.layers)
        copied = range(batch.layers) if layer is None else [layer]
        for each in copied:
            if not 0 <= n <= self.lengths_[each]:
                raise refusals.scatter("BATCH-10", n, each, self.lengths_[each])
        cite("BATCH-6" if layer is None else "BATCH-8", "BATCH-4", "BATCH-12")
        cite(*(["BATCH-11"] if n < batch.lengths[sequence] else []))
        if not n:
            cite("BATCH-7")
        batch.lower(sequence, n)
        for each in copied:
            batch.write(sequence, each, 0, self._first(each, n))

    def _first(self, layer: int, n: int) -> Pair:
        """The first n rows of a layer of the store, without a copy."""
        return Pair(*(meter.resident(a[layer][:, :n]) for a in (self.keys, self.values)))

    def _in_batch(self, batch: Batch, sequence: int) -> None:
        if not 0 <= sequence < len(batch.lengths):
            raise refusals.sequence("BATCH-9", sequence, len(batch.lengths))

    def step(self, keys: Array, values: Array) -> None:
        """Append one row `[layers, m, kv_heads, dim]` to every sequence in every layer."""
        batch = self._batch("step")
        self._steppable(batch, Pair(keys, values))
        cite("BATCH-13", "BATCH-4")
        keys, values = self._encoded(Pair(keys, values))
        for s, at in enumerate(batch.lengths):
            for layer in range(batch.layers):
                batch.write(s, layer, at, Pair(keys[layer, s, :, None], values[layer, s, :, None]))
        batch.lengths = [n + 1 for n in batch.lengths]

    def _encoded(self, rows: Pair) -> Pair:
        """The rows `[layers, m, kv_heads, dim]` of a step as they are kept."""
        kept = self.kept.encoded(Pair(*(a[:, :, :, None] for a in rows)))
        return Pair(*(a[:, :, :, 0] for a in kept))

    def _steppable(self, batch: Batch, rows: Pair) -> None:
        """Refuse a step before anything is written: rows that do not fit, then a full sequence, then a hole."""
        m = len(batch.lengths)
        if not _fit(rows, self.config, m):
            raise refusals.step_rows("BATCH-14", self.config, m, rows)
        for s, n in enumerate(batch.lengths):
            if n >= self.max_len:
                raise refusals.full("BATCH-15", s, self.max_len)
        for s, n in enumerate(batch.lengths):
            if min(batch.held[s]) < n:
                raise refusals.hole("BATCH-16", s, batch.held[s], n)

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Lower the length of one sequence to `to`, if it is longer."""
        batch = self._batch("rollback of a sequence")
        self._in_batch(batch, sequence)
        if to < 0:
            raise refusals.rollback("BATCH-18", to)
        cite("BATCH-17", "BATCH-12", *(["BATCH-11"] if to < batch.lengths[sequence] else []))
        batch.lower(sequence, min(to, batch.lengths[sequence]))

    def reset_batch(self) -> None:
        """Every sequence's length to 0."""
        batch = self._batch("reset")
        cite("BATCH-19", "BATCH-4", "BATCH-11")
        batch.begin(len(batch.lengths))

    def free_batch(self) -> None:
        """Return the batch's memory."""
        cite("BATCH-20")
        self.batch_ = None

    def _end_batch(self) -> None:
        """The store is initialised with another geometry."""
        if self.batch_ is not None:
            cite("BATCH-5")
        self.batch_ = None

    def capture(self) -> Captured:
        """A step of this batch, captured."""
        batch = self._batch("capture")
        cite("BATCH-23")
        return Captured(self, batch)


class Captured:
    """A captured step of one batch with its number of sequences. Each replay reads where to write."""

    def __init__(self, store: Batching, batch: Batch) -> None:
        self.store, self.batch, self.m = store, batch, len(batch.lengths)

    def replay(self, keys: Array, values: Array) -> None:
        """Do it again, on these rows `[layers, m, kv_heads, dim]`."""
        if self.store.batch_ is not self.batch:
            raise refusals.dropped("BATCH-26")
        if len(self.batch.lengths) != self.m:
            raise refusals.captured_size("BATCH-27", self.m, len(self.batch.lengths))
        self.store.step(keys, values)
        cite("BATCH-24", "BATCH-25")


def _fit(rows: Pair, config: Config, m: int) -> bool:
    """Whether rows are one for each of m sequences in every layer."""
    wanted: Sequence[tuple[int | None, ...]] = [
        (config.layers, m, config.kv_heads, dim) for dim in (config.k_dim, config.v_dim)
    ]
    return [a.shape for a in rows] == wanted and {a.dtype for a in rows} == {DTYPES[config.dtype]}
