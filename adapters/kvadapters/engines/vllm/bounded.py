"""vLLM: `KVCacheManager` without prefix caching, for one request. It decides where rows lie, in numpy arrays.

Slots are allocated before the request has its tokens, so that a refusal changes nothing. Whether there are blocks
for more tokens is asked of the manager's coordinator and of its pool, whose answers `allocate_slots` compares too.
Rows that are taken back keep their blocks, as rejected drafts do. vLLM never uses its first block.
"""

from __future__ import annotations

import numpy as np

from kvadapters.engines.limits import check_rows
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config, valid

try:
    import torch
    import vllm
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

    from kvadapters.engines.vllm.requests import LONGEST, plain
    from kvadapters.update import from_update
except ImportError as e:
    raise CannotRun(f"vLLM cannot be imported ({e}); pip install 'kvconform[vllm]'") from e


class One:
    """A manager whose blocks are of one row, and its request."""

    def __init__(self, config: Config) -> None:
        if not valid(config):
            raise ValueError(f"no blocks of {config}")
        self.config, blocks = config, (config.max_len or 0) + 1
        of = FullAttentionSpec(1, num_kv_heads=config.kv_heads, head_size=config.k_dim, dtype=torch.float16)
        whole = KVCacheConfig(blocks, [], [KVCacheGroupSpec(["layer"], of)])
        self.manager = KVCacheManager(whole, LONGEST, 1, 1, enable_caching=False)
        self.rows = [np.zeros(config.shape(side, blocks), DTYPES[config.dtype]) for side in "kv"]
        self.begin()

    def begin(self) -> None:
        """Make a request."""
        self.request = plain("one", [0])

    def append(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Allocate slots, and write rows there. Raises ValueError for rows that this model does not make."""
        if not (n := keys.shape[2]):
            return self.seen()
        at = self.request.num_computed_tokens
        check_rows(self.config, keys, values)
        if self.manager.allocate_slots(self.request, n) is None:
            raise ValueError(f"no blocks for {n} tokens")
        self.request.num_computed_tokens += n
        for buffer, new in zip(self.rows, (keys, values), strict=True):
            buffer[:, :, self.slots()[at:]] = new
        return self.seen()

    def slots(self) -> list[int]:
        """The blocks of the request's tokens, each of one row."""
        (blocks,) = self.manager.get_block_ids("one")
        return list(blocks[: self.request.num_computed_tokens])

    def seen(self) -> tuple[Array, Array]:
        """All rows, through the blocks."""
        keys, values = (buffer[:, :, self.slots()] for buffer in self.rows)
        return keys, values

    def accepts(self, n: int) -> bool:
        """Tell whether the free blocks suffice for n more tokens. Both numbers are vLLM's own."""
        has = self.request.num_computed_tokens
        needed = self.manager.coordinator.get_num_blocks_to_allocate(
            "one", has + n, self.manager.empty_kv_cache_blocks.blocks, 0, has, has, has + n
        )
        return bool(needed <= self.manager.block_pool.get_num_free_blocks())

    def trim(self, n: int) -> None:
        """Count rows out, as rejected drafts."""
        if not 0 <= n <= self.request.num_computed_tokens:
            raise ValueError(f"{n} of {self.request.num_computed_tokens} rows")
        self.request.num_computed_tokens -= n

    def end(self) -> None:
        """Free the blocks, and begin another request."""
        self.manager.free(self.request)
        self.begin()


bounded = from_update(
    "vllm-bounded",
    kind="bounded",
    to_engine=lambda array: array,
    from_engine=lambda array: array,
    make=One,
    update=One.append,
    length=lambda one: one.request.num_computed_tokens,
    accepts=One.accepts,
    trim=One.trim,
    can_trim=lambda one, n: 0 <= n <= one.request.num_computed_tokens,
    reset=One.end,
    also=("zero",),
    said={"version": vllm.__version__},
)
