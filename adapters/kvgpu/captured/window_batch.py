"""A batch whose sequences slide in windows: position p lies in slot `p % window` of the sequence's page."""

from __future__ import annotations

from collections.abc import Sequence

from kvgpu.caches.ring import Ring
from kvgpu.captured.pool_batch import PoolBatch
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.layout import Span, move
from kvgpu.memory.page_pool import Pool
from kvspec.contract import Pair
from kvspec.geometry import Config
from kvspec.refusals import common as refusals


class WindowBatch(PoolBatch):
    """`config` says `window`, of every layer, and `max_len`, how many positions there may be. A sequence has as
    many slots as its window; its table names the same page throughout."""

    def __init__(self, space: Workspace, config: Config, sequences: int) -> None:
        assert config.window is not None and config.layers is not None
        self.window, heads = config.window, config.layers * config.kv_heads
        pool = Pool(space, config.changed(kv_heads=heads, page_size=self.window, pages=sequences))
        super().__init__(space, config, pool, sequences)

    def admit(self, sequence: int, rings: Sequence[Ring]) -> None:
        """Put the rows of rings, one for each layer, in the place of a sequence: those that their next query sees.
        At most two launches a layer, and one more. Raises ValueError if the rings do not fit."""
        n = self._demand_rings(sequence, rings)
        for layer, ring in enumerate(rings):
            seen, source = ring.before_drafts()
            if source is not None:
                self._copy(sequence, layer, source, n - seen, n)
        self._set_length(sequence, n)

    def _demand_rings(self, sequence: int, rings: Sequence[Ring]) -> int:
        """Give the number of positions that every ring has had."""
        wanted = self.config.changed(layers=None, max_len=None)
        lengths = {ring.offset for ring in rings}
        if len(rings) != self.layers or len(lengths) != 1 or any(not self._alike(ring.config) for ring in rings):
            raise ValueError(f"sequence {sequence}: expected {self.layers} rings of one length and {wanted}")
        (n,) = lengths
        self._demand_place(sequence, n)
        return n

    def _alike(self, other: Config) -> bool:
        same = ("kv_heads", "k_dim", "v_dim", "dtype", "window", "batch")
        return all(getattr(self.config, name) == getattr(other, name) for name in same)

    def _copy(self, sequence: int, layer: int, source: Span, first: int, stop: int) -> None:
        """Copy the rows of positions `first` to stop - 1 to their slots: up to the end of the page, then from its
        beginning."""
        page = self._of_layer(self.pool.page(sequence), layer)
        while first < stop:
            slot = first % self.window
            n = min(self.window - slot, stop - first)
            move(self.space.runtime, self.geometry, n, source, page.span(slot))
            source = source._replace(turn=(source.turn + n) % source.wrap)
            first += n

    def _make_room(self) -> None:
        """Refuse a sequence that has come to `max_len`."""
        raise refusals.full("BATCH-15", int(self.lengths.argmax()), self.max_len)

    def read(self, sequence: int) -> Pair:
        """Download the rows that the next query of a sequence sees, `[layers, kv_heads, n, dim]`, the oldest
        first."""
        n = self._demand_sequence(sequence)
        order = [p % self.window for p in range(max(0, n - self.window + 1), n)]
        return Pair(*(a[:, :, order] for a in self._by_layers(self.pool.peek(sequence))))
