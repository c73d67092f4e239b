"""vLLM: `KVCacheManager` with prefix caching, which decides where rows lie; the rows themselves are numpy arrays.

Requests are made, given slots and ended by the calls of vLLM's scheduler. Slots for new tokens are allocated before
the request has them, as for drafts. A refusal then changes nothing. The pool has one block more than the config
says, as vLLM never uses its first. The adapter claims neither evicting a number of
pages nor finding a part of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import DTYPES, Array, Config, valid

try:
    import torch
    import vllm
    from vllm.lora.request import LoRARequest
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.request import Request
except ImportError as e:
    raise CannotRun(f"vLLM cannot be imported ({e}); pip install 'kvconform[vllm]'") from e

LONGEST = 1 << 20
"""Tokens of a request at most."""


class Pool:
    """A manager, its requests by number, and the rows of its blocks: `[blocks, kv_heads, block_size, dim]`."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or config.batch != 1 or not config.page_size or not config.pages:
            raise ValueError(f"no pool of {config}")
        if config.granule == "row":
            raise Unsupported("vLLM finds whole blocks")
        size, heads, blocks = int(config.page_size), config.kv_heads, config.pages + 1
        of = FullAttentionSpec(block_size=size, num_kv_heads=heads, head_size=config.k_dim, dtype=torch.float16)
        whole = KVCacheConfig(blocks, [], [KVCacheGroupSpec(["layer"], of)])
        self.size, self.manager = size, KVCacheManager(whole, LONGEST, size, size)
        init_none_hash(sha256)
        self.hasher, self.names, self.all = get_request_block_hasher(size, sha256), count(), dict[int, Any]()
        self.rows = [np.zeros((blocks, *config.shape(kind, size)[1:]), DTYPES[config.dtype]) for kind in "kv"]

    def match(self, wanted: Wanted) -> int:
        """Look blocks up."""
        return int(self.manager.get_computed_blocks(_made(wanted, next(self.names), self.hasher))[1])

    def request(self, wanted: Wanted, chunk: int | None, *rows: Array) -> tuple[int, int]:
        """Look blocks up, and allocate slots behind them."""
        new = _made(wanted, next(self.names), self.hasher)
        blocks, hit, _ = self.manager.get_computed_blocks(new)
        self._allocate(new, min(new.num_tokens - hit, chunk or LONGEST), rows, hit, blocks)
        number = next(i for i in count() if i not in self.all)
        self.all[number] = new
        return number, hit

    def _allocate(self, of: Any, n: int, rows: Sequence[Array], hit: int = 0, blocks: Any = None) -> None:
        """Allocate slots for n tokens, and write their rows there."""
        begin = of.num_computed_tokens + hit
        if n and self.manager.allocate_slots(of, n, hit, blocks) is None:
            raise ValueError(f"no blocks for {n} tokens")
        for p in range(begin, begin + n):
            for whole, new in zip(self.rows, rows, strict=True):
                whole[self._blocks(of)[p // self.size], :, p % self.size] = new[0, :, p]
        of.num_computed_tokens = begin + n

    def _blocks(self, of: Any) -> list[int]:
        return self.manager.get_block_ids(of.request_id)[0]  # type: ignore[no-any-return]

    def compute(self, sequence: int, n: int, *rows: Array) -> None:
        """Allocate slots for tokens that the request has."""
        of = _decided(self.all[sequence])
        self._allocate(of, min(n, of.num_tokens - of.num_computed_tokens), rows)

    def answer(self, sequence: int, tokens: Sequence[int], *rows: Array) -> None:
        """Allocate slots for tokens first, and give them to the request once there are some."""
        of = _decided(self.all[sequence])
        self._allocate(of, of.num_tokens + len(tokens) - of.num_computed_tokens, rows)
        self._chosen(of, tokens)

    def propose(self, sequence: int, tokens: Sequence[int], *rows: Array) -> None:
        """Allocate slots for drafts."""
        of = _decided(self.all[sequence], whole=True)
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
        blocks, ids = self.manager.block_pool.blocks, self._blocks(self.all[sequence])
        self.manager.evict_blocks({i for i in ids if blocks[i].ref_cnt == 1})
        self.finish(sequence)

    def clear(self) -> None:
        """Have all blocks forget."""
        if not self.manager.reset_prefix_cache():
            raise ValueError("blocks are in use")

    def sequences(self) -> list[int]:
        """Computed tokens of each request."""
        numbers = range(max(self.all, default=-1) + 1)
        return [self.all[i].num_computed_tokens if i in self.all else -1 for i in numbers]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of a request, through its blocks."""
        of = self.all[sequence]
        pages = ([whole[block] for block in self._blocks(of)] for whole in self.rows)
        return Pair(*(np.concatenate(each, 1)[:, : of.num_computed_tokens] for each in pages))

    def free_pages(self) -> int:
        """Blocks that no request has."""
        return int(self.manager.block_pool.get_num_free_blocks())


def _made(wanted: Wanted, name: int, hasher: Any) -> Any:
    """Make a request of vLLM."""
    tokens, adapter, salt, media = wanted
    if not tokens or any(at >= len(tokens) for _, at in media):
        raise ValueError(f"a request of {len(tokens)} tokens with items {media}")
    items = sorted(media, key=lambda item: item[1])
    features = [MultiModalFeatureSpec(None, "image", x, PlaceholderRange(at, 1)) for x, at in items]
    lora = LoRARequest(adapter, int.from_bytes(adapter.encode()), "/") if adapter else None
    sampling = SamplingParams(max_tokens=LONGEST)
    request = partial(Request, str(name), list(tokens), sampling, None, mm_features=features, lora_request=lora)
    return request(cache_salt=salt or None, block_hasher=hasher)


def _decided(of: Any, whole: bool = False) -> Any:
    """Give a request that has no drafts; with `whole` also no tokens that are left."""
    if of.num_computed_tokens > of.num_tokens or (whole and of.num_computed_tokens < of.num_tokens):
        raise ValueError(f"{of.num_computed_tokens} of {of.num_tokens} tokens are computed")
    return of


class Keyed:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        dialects = {"duplicates": "any", "dropped": "kept"}
        claim = {"level": "visible", "without": ["evict", "rows"], **dialects}
        return {"name": "vllm-keyed", "version": vllm.__version__, "chapters": {"keyed": claim}}

    def open(self, kind: str, config: Config) -> Pool:
        """A fresh pool."""
        if kind != "keyed":
            raise Unsupported(f"no kind {kind}")
        return Pool(config)


keyed = Keyed
