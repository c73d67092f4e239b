"""A store's batch, for captured steps: every sequence grows in a place of its own."""

from __future__ import annotations

from kvgpu.caches.attention import Runs
from kvgpu.caches.attention_store import runs
from kvgpu.caches.store import Store
from kvgpu.captured.batch import Batch
from kvgpu.memory.layout import Place
from kvspec.refusals import common as refusals


class GrowingBatch(Batch):
    """The sequences that a store's batch has now. The step's input is the batch's own."""

    def __init__(self, store: Store) -> None:
        self.store, self.memory = store, store.demand_batch("capture")
        super().__init__(store.space, store.config, self.memory.taken, len(self.memory.lengths))
        self.ends, self.tables = self.memory.memory.lengths, self.tabled(self.max_len)
        self.apart = self.config.kv_heads * self.max_len

    def place(self, layer: int) -> Place:
        """Give the places of a layer's sequences: a page each."""
        return self.memory.memory.begin(layer * self.memory.places)

    def lying(self, layer: int) -> Runs:
        """Say where the rows of a layer lie: in runs, which attention reads faster than pages."""
        return runs(self.memory.memory, layer * self.memory.places)

    def demand(self) -> None:
        """Refuse what a captured step of the batch refuses."""
        memory = self.memory
        if self.store.batched is not memory:
            raise refusals.dropped("BATCH-26")
        if len(memory.lengths) != self.sequences:
            raise refusals.captured_size("BATCH-27", self.sequences, len(memory.lengths))
        lengths, held = memory.lengths, memory.held
        if lengths.max() == self.max_len or (lengths != held.T).any():
            self.store.demand_step(memory, *self.rows)  # it refuses; asked only here, because it takes longer

    def advance(self) -> None:
        """Advance the lengths that the batch knows."""
        self.memory.advance()
