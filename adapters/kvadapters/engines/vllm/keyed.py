"""vLLM: `KVCacheManager` with prefix caching, which decides where rows lie; the rows themselves are numpy arrays.

Requests are made, given slots and ended by the calls of vLLM's scheduler. Slots for new tokens are allocated before
the request has them, as for drafts. A refusal then changes nothing. vLLM never uses its first block. The adapter
claims neither evicting a number of pages nor finding a part of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from kvadapters.keyed import Mapped
from kvadapters.one_kind import OneKind
from kvspec.contract import Request
from kvspec.errors import CannotRun
from kvspec.geometry import Array, Config

try:
    import torch
    import vllm
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

    from kvadapters.engines.vllm.requests import LONGEST, request
except ImportError as e:
    raise CannotRun(f"vLLM cannot be imported ({e}); pip install 'kvconform[vllm]'") from e


class Pool(Mapped):
    """A manager, and its requests."""

    length = staticmethod(attrgetter("num_computed_tokens"))
    tokens = staticmethod(attrgetter("num_tokens"))

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        size, heads = self.size, config.kv_heads
        of = FullAttentionSpec(block_size=size, num_kv_heads=heads, head_size=config.k_dim, dtype=torch.float16)
        whole = KVCacheConfig(self.pages + 1, [], [KVCacheGroupSpec(["layer"], of)])
        self.manager = KVCacheManager(whole, LONGEST, size, size)
        init_none_hash(sha256)
        self.hasher, self.names = get_request_block_hasher(size, sha256), count()

    def found(self, wanted: Request) -> tuple[Any, int]:
        """Make a request of vLLM, and look blocks up."""
        new = request(str(next(self.names)), wanted, self.hasher)
        blocks, hit, _ = self.manager.get_computed_blocks(new)
        new.found = hit, blocks
        return new, int(hit)

    def _allocate(self, of: Any, n: int, rows: Sequence[Array]) -> None:
        """Allocate slots for n tokens, at first behind the blocks that were found, and write their rows there."""
        (hit, blocks), of.found = of.found, (0, None)
        begin = of.num_computed_tokens + hit
        if n and self.manager.allocate_slots(of, n, hit, blocks) is None:
            raise ValueError(f"no blocks for {n} tokens")
        of.num_computed_tokens = begin + n
        self.write(of, begin, rows)

    def slots(self, of: Any) -> Array:
        """The slots of the tokens of a request, through its blocks."""
        at = np.arange(of.num_computed_tokens)
        blocks = np.array(self.manager.get_block_ids(of.request_id)[0], int)
        slots: Array = blocks[at // self.size] * self.size + at % self.size
        return slots

    def more(self, of: Any, end: int, rows: Sequence[Array], tokens: Sequence[int] = ()) -> None:
        """Allocate slots for tokens first, and give them to the request once there are some."""
        if of.spec_token_ids:
            raise ValueError("nobody has chosen among the drafts")
        self._allocate(of, end - of.num_computed_tokens - of.found[0], rows)
        self._chosen(of, tokens)

    def propose(self, sequence: int, tokens: Sequence[int], *rows: Array) -> None:
        """Allocate slots for drafts."""
        of = self.all[sequence]
        if of.num_computed_tokens != of.num_tokens:
            raise ValueError(f"{of.num_computed_tokens} of {of.num_tokens} tokens are computed")
        self._allocate(of, len(tokens), rows)
        of.spec_token_ids = list(tokens)

    def accept(self, sequence: int, n: int) -> None:
        """Take rejected drafts back, and make the others the request's."""
        of = self.all[sequence]
        if not 0 <= n <= len(of.spec_token_ids):
            raise ValueError(f"{n} of {len(of.spec_token_ids)} drafts")
        of.num_computed_tokens -= len(of.spec_token_ids) - n
        tokens, of.spec_token_ids = of.spec_token_ids[:n], []
        self._chosen(of, tokens)

    def _chosen(self, of: Any, tokens: Sequence[int]) -> None:
        if tokens:
            of.append_output_token_ids(list(tokens))
            self.manager.cache_blocks(of, of.num_computed_tokens)

    def finish(self, sequence: int) -> None:
        """Free blocks."""
        self.manager.free(self.all.pop(sequence))

    def abort(self, sequence: int) -> None:
        """Have blocks forget that no other request has, and free them."""
        (blocks,) = self.manager.get_blocks(self.all[sequence].request_id).blocks
        self.manager.evict_blocks({block.block_id for block in blocks if block.ref_cnt == 1})
        self.finish(sequence)

    def forget(self) -> None:
        """Have all blocks forget."""
        if not self.manager.reset_prefix_cache():
            raise ValueError("blocks are in use")

    def free_pages(self) -> int:
        """Blocks that no request has."""
        return int(self.manager.block_pool.get_num_free_blocks())


CLAIM = {"without": ["evict", "rows"], "duplicates": "any", "dropped": "kept"}
keyed = OneKind("vllm-keyed", "keyed", Pool, CLAIM, {"version": vllm.__version__})
