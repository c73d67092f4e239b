"""mlx-lm: the store of caches of prompts that its server has, `LRUPromptCache`.

A request is looked up, and goes on in the copy of a cache that the store hands out. What is computed is stored at
once, as a copy under all tokens so far. The store keeps as many caches as the config has pages. It finds any number
of rows, all of them too. The adapter trims the copy to whole pages, and so that the last token is computed. The
store has no sequences: the adapter keeps their caches, and refuses those for which the pages are too few. Salts and
adapters are names of a model. It does not claim to find parts of pages: what is found there is a copy, and no page
that the next row is written into, so that rows behind it are found for longer than in a page.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from kvadapters.keyed import Stored, Text
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    from mlx_lm.models.cache import KVCache, LRUPromptCache, trim_prompt_cache

    from kvadapters.arrays.mlx import from_engine, to_engine
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


class Pool(Stored):
    """A store, and the sequences, each with a cache of one layer."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.prompts = LRUPromptCache(self.pages)

    @staticmethod
    def length(of: Text) -> int:
        """What the cache counts."""
        return int(of.rows.offset)

    def found(self, wanted: Wanted) -> tuple[Text, int]:
        """Fetch the nearest cache."""
        name = (wanted.adapter, wanted.salt)
        found, rest = self.prompts.fetch_nearest_cache(name, [*wanted.tokens])
        caches, hit = found or [KVCache()], len(wanted.tokens) - len(rest)
        most = min(hit, len(wanted.tokens) - 1) // self.size * self.size
        hit -= trim_prompt_cache(caches, hit - most)
        (rows,) = caches
        return Text([*wanted.tokens], name, hit, rows), hit

    def load(self, new: Text) -> None:
        """Nothing is left to do: what was fetched is a copy."""

    def store(self, of: Text, end: int, rows: Sequence[Array]) -> None:
        """Update the cache, and insert a copy."""
        begin = self.length(of)
        of.rows.update_and_fetch(*(to_engine(each[:, :, begin:end]) for each in rows))
        self.prompts.insert_cache(of.name, of.tokens[:end], [copy.deepcopy(of.rows)])

    def forget(self) -> None:
        """Trim the store to no cache."""
        self.prompts.trim_to(n_sequences=0)

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of its cache."""
        of, config = self.all[sequence].rows, self.config
        if of.empty():
            return Pair(
                *(np.zeros((config.kv_heads, 0, d), DTYPES[config.dtype]) for d in (config.k_dim, config.v_dim))
            )
        return Pair(*(from_engine(each[0, :, : of.offset]).copy() for each in (of.keys, of.values)))


WITHOUT = ["count", "propose", "accept", "abort", "evict", "media", "rows"]
SAID: dict[str, Any] = {"version": version("mlx-lm"), "details": {"mlx": version("mlx")}}
keyed = OneKind("mlx-keyed", "keyed", Pool, {"without": WITHOUT, "duplicates": "any", "evicts": "any"}, SAID)
