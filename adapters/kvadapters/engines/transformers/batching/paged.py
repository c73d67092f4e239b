"""Hugging Face transformers: `PagedAttentionCache` without shared prefixes, as a pool of pages.

A sequence is a request without tokens, which is given blocks for its rows. A fork takes all rows of a request, and
rows do not go back one by one. So the adapter claims no forks, and no truncating.
"""

from __future__ import annotations

from operator import attrgetter

from kvadapters.engines.limits import check_rows
from kvadapters.engines.transformers.batching.blocks import SAID, Blocks
from kvadapters.one_kind import OneKind
from kvadapters.pools import Pool
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


class Paged(Pool):
    """A cache that finds nothing."""

    length = staticmethod(attrgetter("position_offset"))

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.blocks = Blocks(self, shares=False)

    def admit(self) -> int:
        """Make a request without tokens, and give it blocks for none."""
        new = self.blocks.request([])
        self.blocks.cache.can_store_request_tokens(new, 0)
        return self.added(new)

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Give a request blocks, and write rows there. Raises ValueError for rows that no model makes."""
        if not (n := keys.shape[2]):
            return
        of = self.all[sequence]
        check_rows(self.config, keys, values)
        if not self.blocks.cache.can_store_request_tokens(of, n):
            raise ValueError(f"no blocks for {n} rows")
        self.blocks.write(of, keys, values)

    def drop(self, sequence: int) -> None:
        """Free blocks."""
        self.blocks.cache.free_blocks(self.all.pop(sequence).request_id)

    def read_sequence(self, sequence: int) -> Pair:
        """The rows that attention would get."""
        return self.blocks.read(self.all[sequence])

    def free_pages(self) -> int:
        """Blocks that no request has."""
        return self.blocks.free()


WITHOUT = ["fork", "truncate", "gather", "peek"]
paged = OneKind("transformers-paged", "page", Paged, {"without": WITHOUT}, SAID)
