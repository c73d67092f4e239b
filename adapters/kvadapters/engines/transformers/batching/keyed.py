"""Hugging Face transformers: `PagedAttentionCache`, which finds full blocks by their tokens.

Requests are matched, given blocks, marked and freed by the calls of its scheduler and of its processor. Where
blocks are short, all that nobody has is forgotten at once, as its scheduler does. So the adapter does not claim to
evict a number of pages. A request of transformers has no salt, adapter or images. An abort frees blocks for good,
as is done with those whose rows go to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from kvadapters.engines.transformers.batching.blocks import SAID, Blocks
from kvadapters.keyed import Keyed
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair, Request
from kvspec.geometry import Array, Config


class Pool(Keyed):
    """A cache that finds full blocks by their tokens."""

    length = staticmethod(attrgetter("position_offset"))

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.blocks = Blocks(self, shares=True)
        self.cache = self.blocks.cache

    @staticmethod
    def tokens(of: Any) -> int:
        """Those of the prompt and of the answer."""
        return len(of.initial_tokens) + len(of.generated_tokens)

    def found(self, wanted: Request) -> tuple[Any, int]:
        """Search blocks, which are the request's from then on."""
        new = self.blocks.request(wanted.tokens)
        new.position_offset = self.cache.search_prefix_match(new.request_id, new.initial_tokens)
        return new, new.position_offset

    def match(self, wanted: Request) -> int:
        """Search blocks, and give them back."""
        new, hit = self._found(wanted)
        self.cache.free_blocks(new.request_id)
        return hit

    def begin(self, new: Any, hit: int, end: int, rows: Sequence[Array]) -> None:
        """Compute what was not found. Refused, what was found goes back."""
        try:
            self.more(new, end, rows)
        except ValueError:
            self.cache.free_blocks(new.request_id)
            raise

    def more(self, of: Any, end: int, rows: Sequence[Array], tokens: Sequence[int] = ()) -> None:
        """Add tokens to the request if there are blocks for them. Mark the blocks that are full now."""
        begin = of.current_len()
        if self.needs(begin, end) > self.free_pages():
            raise ValueError(f"no blocks for {end - begin} tokens")
        of.generated_tokens.extend(tokens)
        self._allocate(of, end - begin)
        filled = self.cache.count_new_complete_blocks(of, end - begin)
        self.blocks.write(of, *(each[:, :, begin:end] for each in rows))
        self.cache.mark_complete_blocks(of, filled)

    def _allocate(self, of: Any, n: int) -> None:
        """Allocate blocks for n more tokens. If too few are free, forget first what no request has."""
        if not self.cache.can_store_request_tokens(of, n):
            self.cache.evict_cached_blocks()
            if not self.cache.can_store_request_tokens(of, n):
                raise RuntimeError(f"blocks are free, and none are given for {n} tokens")

    def read_sequence(self, sequence: int) -> Pair:
        """The rows that attention would get."""
        return self.blocks.read(self.all[sequence])

    def free_pages(self) -> int:
        """Blocks that no request has."""
        return self.blocks.free()

    def finish(self, sequence: int) -> None:
        """Free blocks."""
        self.cache.free_blocks(self.all.pop(sequence).request_id)

    def abort(self, sequence: int) -> None:
        """Free blocks for good."""
        self.cache.free_blocks(self.all.pop(sequence).request_id, no_cache=True)

    def forget(self) -> None:
        """Reset the cache."""
        self.cache.reset()


WITHOUT = ["propose", "accept", "evict", "adapters", "salts", "media", "rows"]
CLAIM = {"without": WITHOUT, "duplicates": "any", "evicts": "any"}
keyed = OneKind("transformers-keyed", "keyed", Pool, CLAIM, SAID)
