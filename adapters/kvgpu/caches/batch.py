"""The batch of a store on a device: a place for each sequence, and captured steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvgpu.memory.batch_rows import Sequences
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.row_groups import Layers
from kvgpu.runtime import Captured as Recorded
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Config
from kvspec.refusals import common as refusals

MOST = 32
"""Sequences allowed in a batch by default."""


class Batching:
    """Mixin of a store: its batch.

    The store has `space`, `config`, `max_len`, `lengths_` (one a layer) and `layers`."""

    space: Workspace
    config: Config
    max_len: int
    lengths_: list[int]
    layers: Layers
    batched: Sequences | None = None

    def batch(self, m: int, most: int | None = None) -> None:
        """Begin with m sequences. Use the memory that is there if it is enough, else new memory."""
        allowed = MOST if most is None else most
        if m < 1 or m > allowed:
            raise refusals.batch_size("BATCH-2", m, allowed)
        old = self.batched
        made = old if old is not None and m <= old.places else Sequences(self.space, self.config, m)
        if old is not None and made is not old:
            old.release()
        made.begin(m)
        self.batched = made

    def demand_batch(self, what: str) -> Sequences:
        """Refuse where there is no batch."""
        if self.batched is None:
            raise refusals.no_batch("BATCH-3", what)
        return self.batched

    def _demand_sequence(self, what: str, sequence: int) -> Sequences:
        batch = self.demand_batch(what)
        if sequence < 0 or sequence >= len(batch.lengths):
            raise refusals.sequence("BATCH-9", sequence, len(batch.lengths))
        return batch

    def sequences(self) -> list[int] | None:
        """The length of each sequence, as the host knows it; None where there is no batch."""
        return None if self.batched is None else [int(n) for n in self.batched.lengths]

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """Download what a layer holds of a sequence, `[kv_heads, n, dim]`."""
        batch = self._demand_sequence("read", sequence)
        found = batch.memory.read(layer * batch.places + sequence, 1, int(batch.held[sequence, layer]))
        return Pair(*(a[0] for a in found))

    def addresses(self) -> list[int]:
        """Give a number for each block of the batch; it is the block's own for as long as the block lives."""
        return [] if self.batched is None else [id(b) for b in (*self.batched.memory.blocks, self.batched.input)]

    def batch_bytes(self) -> int:
        """Bytes of rows that the batch has allocated."""
        return 0 if self.batched is None else self.batched.memory.nbytes

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Copy the store's first n rows to a sequence's place on the device: one launch for all layers."""
        batch = self._demand_sequence("scatter", sequence)
        if layer is not None and (layer < 0 or layer >= batch.layers):
            raise refusals.layer("BATCH-9", layer, batch.layers)
        first, count = (0, batch.layers) if layer is None else (layer, 1)
        for i, length in enumerate(self.lengths_[first : first + count], first):
            if n < 0 or n > length:
                raise refusals.scatter("BATCH-10", n, i, length)
        batch.scatter(self.layers, sequence, n, first, count)

    def step(self, keys: Any, values: Any) -> None:
        """Append a row `[layers, m, kv_heads, dim]` to every sequence in every layer: one launch. Rows on the
        host are uploaded first."""
        batch = self.demand_batch("step")
        self.demand_step(batch, keys, values)
        batch.append(batch.lying(keys, values) or batch.take(keys, values))
        batch.advance()

    def demand_step(self, batch: Sequences, keys: Any, values: Any) -> None:
        """Refuse rows that do not fit the batch, then a sequence that is full, then one with a hole."""
        m, config = len(batch.lengths), self.config
        for array, dim in ((keys, config.k_dim), (values, config.v_dim)):
            if array.shape != (batch.layers, m, config.kv_heads, dim) or array.dtype != DTYPES[config.dtype]:
                raise refusals.step_rows("BATCH-14", config, m, Pair(keys, values))
        full = np.flatnonzero(batch.lengths == self.max_len)
        if full.size:
            raise refusals.full("BATCH-15", int(full[0]), self.max_len)
        short = np.flatnonzero((batch.held != batch.lengths[:, None]).any(1))
        if short.size:
            s = int(short[0])
            raise refusals.hole("BATCH-16", s, batch.held[s].tolist(), int(batch.lengths[s]))

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Cut a sequence to length `to` if it is longer; always one launch."""
        batch = self._demand_sequence("rollback of a sequence", sequence)
        if to < 0:
            raise refusals.rollback("BATCH-18", to)
        batch.lower(sequence, to)

    def reset_batch(self) -> None:
        """Every length to 0; one launch."""
        batch = self.demand_batch("reset")
        batch.begin(len(batch.lengths))

    def free_batch(self) -> None:
        """Free the batch's memory, and the memory of what was captured."""
        if self.batched is not None:
            self.batched.release()
        self.batched = None

    def capture(self) -> Captured:
        """Capture the launch of a step on the rows in the batch's input."""
        return Captured(self, self.demand_batch("capture"))


class Captured:
    """A captured step of a batch, for the number of sequences at capture. Kernels read the lengths on the
    device."""

    def __init__(self, store: Batching, batch: Sequences) -> None:
        self.store, self.batch, self.m = store, batch, len(batch.lengths)
        self.work: Recorded = batch.space.runtime.capture(lambda: batch.append(batch.taken))

    def replay(self, keys: Any, values: Any) -> None:
        """Upload rows to the batch's input, and replay the step. Where the host writes rows itself, it reads them
        where they lie."""
        if self.store.batched is not self.batch:
            raise refusals.dropped("BATCH-26")
        if len(self.batch.lengths) != self.m:
            raise refusals.captured_size("BATCH-27", self.m, len(self.batch.lengths))
        self.store.demand_step(self.batch, keys, values)
        there = self.batch.lying(keys, values)
        if there is None or not self.batch.by_hand(there):
            self.batch.take(keys, values)
            self.work.replay()
        self.batch.advance()
