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
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import DTYPES, Array, Config, valid

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
    from sglang.srt.runtime_context import get_context, get_parallel
    from sglang.srt.sampling.sampling_params import SamplingParams
except ImportError as e:
    raise CannotRun(f"SGLang cannot be imported ({e}); nox -s engines-sglang installs it") from e

LONGEST, MOST = 1 << 14, 256
"""Tokens of a request at most, and requests at once."""


class Pool:
    """A tree over an allocator, its requests by number, and the rows of its slots: `[slots, kv_heads, dim]`."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or config.batch != 1 or not config.page_size or not config.pages:
            raise ValueError(f"no pool of {config}")
        if config.granule == "row" and config.page_size > 1:
            raise Unsupported("SGLang finds whole pages")
        self.size, slots = int(config.page_size), config.pages * config.page_size
        kind = TokenToKVPoolAllocator if self.size == 1 else PagedTokenToKVPoolAllocator
        pages = () if self.size == 1 else (self.size,)
        self.free = kind(slots, *pages, torch.float32, "cpu", None, False)
        self.places = ReqToTokenPool(MOST, LONGEST, "cpu", enable_memory_saver=False)
        self.tree = UnifiedRadixCache(
            CacheInitParams(
                disable=False,
                req_to_token_pool=self.places,
                token_to_kv_pool_allocator=self.free,
                page_size=self.size,
                tree_components=(ComponentType.FULL,),
                tree_core_backend="python",
            )
        )
        self.names, self.all = count(), dict[int, Any]()
        widths = (config.k_dim, config.v_dim)
        self.rows = [np.zeros((slots + self.size, config.kv_heads, d), DTYPES[config.dtype]) for d in widths]

    def match(self, wanted: Wanted) -> int:
        """Match all tokens but the last."""
        return int(self._matched(wanted).prefix_len)

    def _matched(self, wanted: Wanted) -> Any:
        new = _made(wanted, str(next(self.names)))
        match_kv_cache(new, self.tree, max_prefix_len=len(new.origin_input_ids) - 1)
        return new

    def request(self, wanted: Wanted, chunk: int | None, *rows: Array) -> tuple[int, int]:
        """Match and lock a prefix, and give the request a row of the table."""
        new = self._matched(wanted)
        hit = new.prefix_len
        new.lock = self.tree.lock(new.last_node)
        end = min(len(new.origin_input_ids), hit + (chunk or LONGEST))
        if not self._room(hit, end):
            self.tree.unlock(new.lock)
            raise ValueError(f"no pages for {end - hit} tokens")
        (new.kv.req_pool_idx,) = self.places.alloc_rows(1)
        self.places.write((new.kv.req_pool_idx, slice(0, hit)), self.tree.prefix_device_indices(new).int())
        new.kv.cache_protected_len = new.kv.kv_committed_len = new.kv.kv_allocated_len = hit
        self._computed(new, end, rows)
        number = next(i for i in count() if i not in self.all)
        self.all[number] = new
        return number, hit

    def _room(self, begin: int, end: int) -> bool:
        """Tell whether there are pages for tokens, free or of nobody."""
        return bool(self._slots(begin, end) <= self.free.available_size() + self.tree.evictable_size())

    def _slots(self, begin: int, end: int) -> int:
        """Count the slots of the pages that tokens need beside those that the ones before them have."""
        return (-(-end // self.size) - -(-begin // self.size)) * self.size

    def _computed(self, of: Any, end: int, rows: Sequence[Array]) -> None:
        """Take pages for tokens, write their rows there, and publish them."""
        begin = of.kv.kv_committed_len
        if need := self._slots(begin, end):
            evict_from_tree_cache(self.tree, need)
            at = -(-begin // self.size) * self.size
            row = slice(at, at + need)
            self.places.write((of.kv.req_pool_idx, row), self.free.alloc(need).int())
        slots = self._of(of, begin, end)
        for whole, new in zip(self.rows, rows, strict=True):
            whole[slots] = new[0, :, begin:end].swapaxes(0, 1)
        of.kv.kv_committed_len = of.kv.kv_allocated_len = end
        of.refresh_fill_ids()
        self.tree.checkpoint(of, up_to=end)

    def _of(self, of: Any, begin: int, end: int) -> Array:
        """The slots of tokens of a request."""
        slots: Array = self.places.req_to_token[of.kv.req_pool_idx, begin:end].numpy()
        return slots

    def compute(self, sequence: int, n: int, *rows: Array) -> None:
        """Compute tokens that the request has."""
        of = self.all[sequence]
        self._more(of, min(of.kv.kv_committed_len + n, len(of.origin_input_ids) + len(of.output_ids)), rows)

    def answer(self, sequence: int, tokens: Sequence[int], *rows: Array) -> None:
        """Add tokens to the request once there are pages, and compute them."""
        of = self.all[sequence]
        self._more(of, len(of.origin_input_ids) + len(of.output_ids) + len(tokens), rows, tokens)

    def _more(self, of: Any, end: int, rows: Sequence[Array], tokens: Sequence[int] = ()) -> None:
        if not self._room(of.kv.kv_committed_len, end):
            raise ValueError(f"no pages for {end} tokens")
        of.output_ids.extend(tokens)
        self._computed(of, end, rows)

    def finish(self, sequence: int) -> None:
        """Give the pages back; the tree keeps what it has a key for."""
        release_kv_cache(self.all.pop(sequence), self.tree, checkpoint=True)

    def clear(self) -> None:
        """Have the tree forget all, as a flush does."""
        if self.all:
            raise ValueError("requests are running")
        self.tree.reset()
        self.places.clear()
        self.free.clear()

    def sequences(self) -> list[int]:
        """Computed tokens of each request."""
        numbers = range(max(self.all, default=-1) + 1)
        return [self.all[i].kv.kv_committed_len if i in self.all else -1 for i in numbers]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of a request, through its row of the table."""
        of = self.all[sequence]
        slots = self._of(of, 0, of.kv.kv_committed_len)
        return Pair(*(whole[slots].swapaxes(0, 1) for whole in self.rows))

    def free_pages(self) -> int:
        """Pages that no request has: the allocator's, and those of the tree that nobody locks."""
        return int(self.free.available_size() + self.tree.evictable_size()) // self.size


def _made(wanted: Wanted, name: str) -> Any:
    """Make a request of SGLang. It names adapters by 32 digits, so a name is filled up."""
    tokens, adapter, salt, _ = wanted
    if not tokens:
        raise ValueError("a request without tokens")
    lora = f"{adapter:x<32}" if adapter else None
    how = SamplingParams(max_new_tokens=LONGEST)
    return Req(name, "", array("q", tokens), how, lora_id=lora, cache_salt=salt or None, vocab_size=1 << 31)


class Keyed:
    """The adapter."""

    def __init__(self) -> None:
        backends = dict.fromkeys(("attention_backend", "prefill_attention_backend"), "torch_native")
        get_context().override_server_args(device="cpu", skip_tokenizer_init=True, **backends).install()
        get_parallel().override_permanently(dp_rank=None)

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        without = ["propose", "accept", "abort", "evict", "media", "rows"]
        dialects = {"duplicates": "any", "evicts": "any"}
        claim = {"level": "visible", "without": without, **dialects}
        return {"name": "sglang-keyed", "version": sglang.__version__, "chapters": {"keyed": claim}}

    def open(self, kind: str, config: Config) -> Pool:
        """A fresh pool."""
        if kind != "keyed":
            raise Unsupported(f"no kind {kind}")
        return Pool(config)


keyed = Keyed
