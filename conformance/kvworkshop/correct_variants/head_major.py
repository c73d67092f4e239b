"""A store with heads outermost."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.cite import cite
from kvref.memory import meter
from kvref.store import Store
from kvspec.geometry import DTYPES, Array, Config
from kvworkshop.correct_variants.variant import Variant


class ArrangedStore(Store):
    """A store whose arrays are arranged otherwise in memory."""

    def _allocate(self, config: Config, zeroed_by: str) -> None:
        cite(zeroed_by)
        assert config.layers is not None and config.max_len is not None
        self.config, self.max_len, self.zeroed_by = config, config.max_len, zeroed_by
        self.keys, self.values = (self.arrays(config, kind, config.layers, config.max_len) for kind in "kv")
        self.lengths_ = [0] * config.layers

    def arrays(self, config: Config, kind: str, layers: int, rows: int) -> list[Array]:
        """Zeros `[kv_heads, max_len, dim]` for each layer."""
        raise NotImplementedError


class HeadMajorStore(ArrangedStore):
    """A store with heads outermost: all layers of a head lie together in one array for keys and one for values."""

    def arrays(self, config: Config, kind: str, layers: int, rows: int) -> list[Array]:
        """All in one array `[kv_heads, layers, max_len, dim]`."""
        _, heads, _, dim = config.shape(kind, rows)
        whole = meter.zeros((heads, layers, rows, dim), DTYPES[config.dtype])
        return [whole[:, layer] for layer in range(layers)]


class HeadMajor(Variant):
    """A store that keeps all rows of a head together, layer after layer; batches work over it as over any
    store."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": HeadMajorStore}
