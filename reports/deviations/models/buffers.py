"""Buffers: how they grow, who else has them, and what an update that raises leaves in them."""

from __future__ import annotations

from kvref.list_model.caches import CacheModel
from kvref.list_model.growing import GrowingModel
from kvref.list_model.ring import RingModel
from kvref.list_model.rows import Rows, fit
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.unsaid import Unsaid
from kvspec.errors import Refused

GEOMETRY = ("CACHE-2",)
"""The clauses that refuse rows of another geometry."""


class HalfWritten(CacheModel):
    """An update whose values do not fit has written its keys before it raises."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        try:
            super().demand_rows(keys, values)
        except (Refused, Unsaid) as e:
            refused = e.unless if isinstance(e, Unsaid) else e
            if refused is not None and refused.clause in GEOMETRY and not _values_fit(self, keys, values):
                raise Unsaid("refused ok") from None
            raise


class RingHalfWritten(HalfWritten, RingModel):
    """The same of rings alone."""


def _values_fit(cache: CacheModel, keys: Rows, values: Rows) -> bool:
    config = cache.config
    return fit(keys._replace(shape=(*values.shape[:3], config.k_dim)), values, config, *keys.shape[:3])


class GrowsBySteps(GrowingModel):
    """mlx-lm: a buffer that grows by steps. How long it is in a cache that was restored is not said."""

    buffer: int | None = 0

    def take(self, serials: list[int]) -> None:
        if self.buffer is not None and self._grows(len(serials)):
            step, there = self.config.step, self.buffer if self.offset % self.config.step == 0 else self.offset
            self.buffer = there + -(-len(serials) // step) * step
        super().take(serials)

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        super().restore(snapshot, to)
        self.buffer = None if snapshot is not None else self.buffer

    def _grows(self, n: int) -> bool:
        return self.buffer is None or self.offset + n > self.buffer


class KeysGrowAlone(GrowsBySteps):
    """mlx-lm: where its buffers grow by steps, an update whose values have another width raises when the buffer of
    the keys has grown and that of the values has not. Nothing shows it until the next update."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        try:
            super().demand_rows(keys, values)
        except (Refused, Unsaid):
            if keys.n and self.buffer != 0 and self._grows(keys.n) and _keys_alone_fit(self, keys, values):
                raise Unsaid("refused") from None
            raise


def _keys_alone_fit(cache: CacheModel, keys: Rows, values: Rows) -> bool:
    """Whether rows would fit if the values were as wide as those of the cache."""
    as_wide = values._replace(shape=(*values.shape[:3], cache.config.v_dim))
    return as_wide != values and fit(keys, as_wide, cache.config, cache.config.batch, cache.config.kv_heads, keys.n)


class LendsItsFullBuffer(GrowsBySteps):
    """mlx-lm: an update that fills its buffer returns the buffer itself, which it later writes on."""

    lent = False

    def take(self, serials: list[int]) -> None:
        super().take(serials)
        self.lent = self.lent or self.buffer in (None, self.offset)

    def overwritten(self) -> None:
        """Nothing is said of a cache whose buffer is overwritten."""
        if self.lent:
            raise Unsaid
