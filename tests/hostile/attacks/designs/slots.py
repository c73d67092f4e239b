"""A copy buffer that is a dictionary from slots to rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hostile.attacks.designs.rows import Row, check, demand
from kvref.arithmetic.casts import narrowed, narrows
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, WORDS, Config


class SlotBuffer:
    """A copy buffer that is a dictionary from slots to rows `[kv_heads, dim]`."""

    kind = "copy"

    def __init__(self, config: Config) -> None:
        check(config, "capacity", "layout")
        demand(config.batch == 1 and config.layout in WORDS["layout"], "no such buffer")
        self.config, self.room = config, config.capacity or 0
        dims, dtype = (config.k_dim, config.v_dim), DTYPES[config.dtype]
        self.slots = {i: Row(*(np.zeros((config.kv_heads, d), dtype) for d in dims)) for i in range(self.room)}

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Row by row."""
        if n == 0 or not any(a.shape[1] * a.shape[2] for a in (keys, values)):
            return
        dims = (self.config.k_dim, self.config.v_dim)
        right = [(self.config.kv_heads, d) for d in dims] == [a.shape[1:] for a in (keys, values)]
        demand(right and n <= len(keys) == len(values) and keys.dtype == values.dtype, "another source")
        wider = any(keys.dtype == DTYPES[d] and narrows(d, self.config.dtype) for d in DTYPES)
        demand(wider and type(keys) is not Own, "another source")
        demand(at >= 0 and (sliding or at + n <= self.room), "no such slots")
        keys, values = (np.array(a[:n]) for a in (keys, values))
        if keys.dtype != DTYPES[self.config.dtype]:
            keys, values = (narrowed(a, self.config.dtype) for a in (keys, values))
        self.slots |= {(at + i) % self.room: Row(keys[i], values[i]) for i in range(n)}

    def alias(self, source: int, n: int) -> tuple[Any, Any]:
        """The buffer's own rows: no source for it."""
        pair = (a[source : source + n] for a in self._tokens())
        return tuple(np.array(a).view(Own) for a in pair)  # type: ignore[return-value]

    def _tokens(self) -> Pair:
        rows = [self.slots[i] for i in range(self.room)]
        return Pair(*(np.stack(parts) for parts in zip(*rows, strict=True)))

    def read(self, what: str) -> Pair:
        """All slots, as the layout says."""
        tokens = self._tokens()
        return tokens if self.config.layout == "token" else Pair(*(a.transpose(1, 0, 2) for a in tokens))


class Own(np.ndarray[Any, np.dtype[Any]]):
    """An array that says that it is the buffer's own."""
