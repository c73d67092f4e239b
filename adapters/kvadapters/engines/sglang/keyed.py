"""SGLang: its tree of prefixes and its allocator, which decide where rows lie; the rows are numpy arrays.

Requests are matched, locked, published and released by the calls of SGLang's scheduler. What is computed is
published at once, where the scheduler waits for the end of a prompt. The adapter claims no drafts and no images. It
claims no `abort`, as SGLang keeps what such a request has published, and no `evict`, as the tree forgets whole
branches and no number of pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from kvadapters.keyed import Mapped
from kvadapters.one_kind import OneKind
from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun
from kvspec.geometry import Array, Config

try:
    import sglang
    import torch
    from sglang.srt.managers.schedule_batch import Req
    from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
    from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.common import evict_from_tree_cache, match_kv_cache, release_kv_cache
    from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
    from sglang.srt.mem_cache.unified_cache.components import ComponentType
    from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
    from sglang.srt.sampling.sampling_params import SamplingParams

    from kvadapters.engines.sglang.settings import settings
except ImportError as e:
    raise CannotRun(f"SGLang cannot be imported ({e}); nox -s engines-sglang-keyed installs it") from e

LONGEST, MOST = 1 << 14, 256
"""Tokens of a request at most, and requests at once."""


class Pool(Mapped):
    """A tree over an allocator, and its requests."""

    length = staticmethod(attrgetter("kv.kv_committed_len"))

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        kind = TokenToKVPoolAllocator if self.size == 1 else PagedTokenToKVPoolAllocator
        pages = () if self.size == 1 else (self.size,)
        self.free = kind(self.pages * self.size, *pages, torch.float32, "cpu", None, False)
        self.places = ReqToTokenPool(MOST, LONGEST, "cpu", enable_memory_saver=False)
        kinds = {"tree_components": (ComponentType.FULL,), "tree_core_backend": "python"}
        self.tree = UnifiedRadixCache(CacheInitParams(False, self.places, self.free, self.size, **kinds))
        self.names = count()

    @staticmethod
    def tokens(of: Any) -> int:
        """Those of the prompt and of the answer."""
        return len(of.origin_input_ids) + len(of.output_ids)

    def found(self, wanted: Wanted) -> tuple[Any, int]:
        """Match all tokens but the last. SGLang names adapters by 32 digits, so a name is filled up."""
        tokens, adapter, salt, _ = wanted
        named = {"lora_id": f"{adapter:x<32}" if adapter else None, "cache_salt": salt or None}
        how = SamplingParams(max_new_tokens=LONGEST)
        new = Req(str(next(self.names)), "", array("q", tokens), how, **named, vocab_size=1 << 31)
        match_kv_cache(new, self.tree, max_prefix_len=len(tokens) - 1)
        return new, int(new.prefix_len)

    def begin(self, new: Any, hit: int, end: int, rows: Sequence[Array]) -> None:
        """Lock the prefix, and give the request a row of the table."""
        new.lock = self.tree.lock(new.last_node)
        if self.needs(hit, end) > self.free_pages():
            self.tree.unlock(new.lock)
            raise ValueError(f"no pages for {end - hit} tokens")
        (new.kv.req_pool_idx,) = self.places.alloc_rows(1)
        self.places.write((new.kv.req_pool_idx, slice(0, hit)), self.tree.prefix_device_indices(new).int())
        new.kv.cache_protected_len = new.kv.kv_committed_len = new.kv.kv_allocated_len = hit
        self._computed(new, end, rows)

    def _computed(self, of: Any, end: int, rows: Sequence[Array]) -> None:
        """Take pages for tokens, write their rows there, and publish them."""
        begin = of.kv.kv_committed_len
        if need := self.needs(begin, end) * self.size:
            evict_from_tree_cache(self.tree, need)
            at = -(-begin // self.size) * self.size
            self.places.write((of.kv.req_pool_idx, slice(at, at + need)), self.free.alloc(need).int())
        of.kv.kv_committed_len = of.kv.kv_allocated_len = end
        self.write(of, begin, rows)
        of.refresh_fill_ids()
        self.tree.checkpoint(of, up_to=end)

    def slots(self, of: Any) -> Array:
        """The request's row of the table."""
        return np.asarray(self.places.req_to_token[of.kv.req_pool_idx, : of.kv.kv_committed_len])

    def more(self, of: Any, end: int, rows: Sequence[Array], tokens: Sequence[int] = ()) -> None:
        """Add tokens to the request once there are pages."""
        if self.needs(self.length(of), end) > self.free_pages():
            raise ValueError(f"no pages for {end} tokens")
        of.output_ids.extend(tokens)
        self._computed(of, end, rows)

    def finish(self, sequence: int) -> None:
        """Give the pages back; the tree keeps what it has a key for."""
        release_kv_cache(self.all.pop(sequence), self.tree, checkpoint=True)

    def forget(self) -> None:
        """Have the tree forget all, as a flush does."""
        self.tree.reset()
        self.places.clear()
        self.free.clear()

    def free_pages(self) -> int:
        """Pages that no request has: the allocator's, and those of the tree that nobody locks."""
        return int(self.free.available_size() + self.tree.evictable_size()) // self.size


CLAIM = {"without": ["propose", "accept", "abort", "evict", "media", "rows"], "duplicates": "any", "evicts": "any"}


def keyed() -> OneKind:
    """The adapter, once SGLang has its settings."""
    settings()
    return OneKind("sglang-keyed", "keyed", Pool, CLAIM, {"version": sglang.__version__})
