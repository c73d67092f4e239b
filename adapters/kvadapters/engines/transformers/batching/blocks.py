"""Hugging Face transformers: `PagedAttentionCache`, in blocks of pages, each of which fills a sector.

Rows lie in the cache's own tensor: its `update` writes them and hands them out. A block has a page for each layer
of a model. Blocks come in sectors of a multiple of 128 bytes. So the model has as many layers as fill a sector with
one block, and rows are those of the first. Pages of fewer than four rows, which its manager refuses, are tried too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import gcd
from typing import Any

from kvadapters.engines.limits import one_of, one_width
from kvadapters.pools import Pool
from kvspec.contract import Pair
from kvspec.errors import CannotRun
from kvspec.geometry import Array

try:
    import torch
    import transformers
    from transformers import ContinuousBatchingConfig, PreTrainedConfig
    from transformers.generation.continuous_batching.cache import PagedAttentionCache
    from transformers.generation.continuous_batching.cache_allocators import FullAttentionCacheAllocator as Full
    from transformers.generation.continuous_batching.distributed import DistributedHelper
    from transformers.generation.continuous_batching.requests import RequestState

    from kvadapters.arrays.torch import from_engine, to_engine
    from kvadapters.engines.torch import DTYPES
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

ALIGNED = 128
"""A sector takes a multiple of so many bytes."""


class Blocks:
    """A cache, whose rows are of one layer."""

    def __init__(self, pool: Pool, shares: bool) -> None:
        self.config, self.names, heads = pool.config, count(), pool.config.kv_heads
        dim, dtype = one_width(self.config), DTYPES[one_of(self.config, DTYPES)]
        layers = ALIGNED // gcd(ALIGNED, Full.get_bytes_per_page(heads, dim, dtype, pool.size))
        sizes = {
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "head_dim": dim,
            "hidden_size": heads * dim,
        }
        how = ContinuousBatchingConfig(page_size=pool.size, num_blocks=pool.pages, allow_block_sharing=shares)
        how.max_batch_tokens, how.max_memory_percent = 1, 1.0
        model = PreTrainedConfig(num_hidden_layers=layers, vocab_size=1, **sizes)
        self.cache = PagedAttentionCache(model, how, "cpu", DistributedHelper(None, None), dtype)

    def request(self, tokens: Sequence[int]) -> Any:
        """Make a request."""
        return RequestState(str(next(self.names)), list(tokens), max_new_tokens=None)

    def write(self, of: Any, keys: Array, values: Array) -> None:
        """Write rows into the blocks of a request, behind its earlier rows."""
        self._updated(of, to_engine(keys), to_engine(values))
        of.position_offset += keys.shape[2]

    def read(self, of: Any) -> Pair:
        """Update by no rows: all rows of a request."""
        nothing = torch.zeros(self.config.shape("k", 0), dtype=DTYPES[self.config.dtype])
        return Pair(*(from_engine(each[0]).copy() for each in self._updated(of, nothing, nothing)))

    def _updated(self, of: Any, *rows: Any) -> Any:
        """What attention of the first layer gets."""
        read: list[list[int]] = [[]]
        write: list[list[int]] = [[]]
        self.cache.extend_read_and_write_indices(of.request_id, of.current_len(), rows[0].shape[2], read, write)
        lengths = {"cu_seq_lens_k": {Full.layer_type: torch.zeros(2)}, "max_length_k": {Full.layer_type: 0}}
        at = {"read_index": torch.tensor(read, dtype=int), "write_index": torch.tensor(write, dtype=int)}
        return self.cache.update(*rows, 0, {**lengths, **at})

    def free(self) -> int:
        """Blocks that no request has, whether something is found in them or not."""
        kept = sum(len(each.ledger.cached_blocks) for each in self.cache.cache_allocators.values())
        there = int(self.cache.compute_free_capacity(relative=False))
        return kept + there // int(self.cache.bytes_per_sector)


SAID: dict[str, Any] = {"version": transformers.__version__, "details": {"torch": str(torch.__version__)}}
SAID |= {"dtypes": [*DTYPES], "limits": {"dims": {"equal": True}}}
