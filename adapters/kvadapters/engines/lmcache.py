"""LMCache: its engine over the host's memory, which keeps chunks of rows by their tokens; a page is a chunk.

A request is looked up, and what is found is loaded into a tensor, which stands for the device. What is computed is
stored at once, behind what was loaded or stored before. LMCache has no sequences. The adapter keeps their tensors,
and refuses those for which the pages of the config are too few. LMCache keeps as many chunks as there are pages.
Salts and adapters are tags of a request. It finds whole chunks, and the last token too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import finalize

import numpy as np

from kvadapters.engines.lmcache_device import Device
from kvadapters.keyed import Stored, Text
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    import lmcache
    import torch
    from lmcache.v1.cache_engine import LMCacheEngine
    from lmcache.v1.config import LMCacheEngineConfig
    from lmcache.v1.metadata import LMCacheMetadata
    from lmcache.v1.token_database import ChunkedTokenDatabase
except ImportError as e:
    raise CannotRun(f"LMCache cannot be imported ({e}); nox -s engines-lmcache installs it") from e

ALIGNED = 4096
"""An object takes a multiple of so many bytes."""


class Pool(Stored):
    """An engine, and the sequences."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.dtype, size = np.dtype(DTYPES[config.dtype]), self.size
        self.widths = [config.kv_heads * d * self.dtype.itemsize for d in (config.k_dim, config.v_dim)]
        width = sum(self.widths)
        chunk = -(-width * size // ALIGNED) * ALIGNED
        room = {"local_cpu": True, "max_local_cpu_size": (self.pages * chunk + 1) / 2**30}
        how = LMCacheEngineConfig.from_defaults(chunk_size=size, **room)
        of = LMCacheMetadata("m", 1, 1, 0, 0, torch.uint8, (1, 1, size, 1, width), chunk_size=size)
        nothing = (lambda *_: None, lambda *_: None)
        self.engine = LMCacheEngine(how, of, ChunkedTokenDatabase(how, of), Device(1, 1, width), *nothing)
        self.engine.post_init()
        self.names = count()
        finalize(self, _closed, self.engine)

    @staticmethod
    def length(of: Text) -> int:
        """Rows on the device."""
        return int(of.rows.shape[2])

    def found(self, wanted: Wanted) -> tuple[Text, int]:
        """Look chunks up."""
        tokens, adapter, salt, _ = wanted
        said = {"adapter": adapter, "salt": salt}
        tags = {f"lmcache.tag.{name}": value for name, value in said.items() if value} or None
        hit = int(self.engine.lookup([*tokens], request_configs=tags))
        return Text([*tokens], tags, hit, torch.zeros((1, 1, hit, sum(self.widths)), dtype=torch.uint8)), hit

    def _told(self, of: Text) -> dict[str, Any]:
        return {"device": of.rows, "req_id": f"r{next(self.names)}", "request_configs": of.name}

    def load(self, new: Text) -> None:
        """Load chunks."""
        hit = new.found
        if hit and int(self.engine.retrieve(new.tokens[:hit], **self._told(new)).sum()) != hit:
            raise RuntimeError(f"{hit} tokens were found, and fewer were loaded")

    def store(self, of: Text, end: int, rows: Sequence[Array]) -> None:
        """Put rows on the device, and store the chunks that they fill."""
        begin = self.length(of)
        new = (np.ascontiguousarray(each[0, :, begin:end].swapaxes(0, 1)) for each in rows)
        flat = np.concatenate([each.reshape(-1).view(np.uint8).reshape(end - begin, -1) for each in new], 1)
        of.rows = torch.cat([of.rows, torch.from_numpy(flat)[None, None]], 2)
        if end // self.size > begin // self.size:
            mask = torch.arange(end) >= begin // self.size * self.size
            self.engine.store(of.tokens[:end], mask=mask, **self._told(of))

    def forget(self) -> None:
        """Forget all chunks."""
        self.engine.clear()

    def read_sequence(self, sequence: int) -> Pair:
        """The rows on the device."""
        of, heads = self.all[sequence].rows[0, 0].numpy(), self.config.kv_heads
        keys, values = (
            np.ascontiguousarray(side).view(self.dtype).reshape(len(of), heads, d).swapaxes(0, 1).copy()
            for side, d in zip(
                np.split(of, self.widths[:1], 1), (self.config.k_dim, self.config.v_dim), strict=True
            )
        )
        return Pair(keys, values)


def _closed(engine: Any) -> None:
    """End an engine's threads, and give its loop back."""
    engine.close()
    engine.storage_manager.loop.close()


WITHOUT = ["count", "propose", "accept", "abort", "evict", "media", "rows"]
CLAIM = {"without": WITHOUT, "duplicates": "any", "evicts": "any", "last": "found"}
keyed = OneKind("lmcache-keyed", "keyed", Pool, CLAIM, {"version": lmcache.__version__})
