"""LMCache: its engine over the host's memory, which keeps chunks of rows by their tokens; a page is a chunk.

A request is looked up, and what is found is loaded into a tensor, which stands for the device. What is computed is
stored at once, behind what was loaded or stored before. LMCache has no sequences. The adapter keeps their tensors,
and refuses those for which the pages of the config are too few. LMCache keeps as many chunks as there are pages.
Salts and adapters are tags of a request. It finds whole chunks, and the last token too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import finalize

import numpy as np

from kvspec.contract import Pair
from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import DTYPES, Array, Config, valid

for name, value in {"TRACK_USAGE": "false", "LOG_LEVEL": "CRITICAL"}.items():
    os.environ.setdefault(f"LMCACHE_{name}", value)
os.environ.setdefault("PYTHONHASHSEED", "0")
try:
    import lmcache
    import torch
    from lmcache.v1.cache_engine import LMCacheEngine
    from lmcache.v1.config import LMCacheEngineConfig
    from lmcache.v1.gpu_connector import GPUConnectorInterface
    from lmcache.v1.metadata import LMCacheMetadata
    from lmcache.v1.token_database import ChunkedTokenDatabase
except ImportError as e:
    raise CannotRun(f"LMCache cannot be imported ({e}); nox -s engines-lmcache installs it") from e

ALIGNED = 4096
"""An object takes a multiple of so many bytes."""


class Device(GPUConnectorInterface):  # type: ignore[misc]
    """What moves rows between LMCache and a tensor of bytes, `[1, 1, tokens, width]`."""

    def __init__(self, width: int) -> None:
        self.width = width

    def from_gpu(self, memory_obj: Any, start: int, end: int, **more: Any) -> None:
        """Copy rows into an object."""
        memory_obj.tensor.copy_(more["device"][:, :, start:end])

    def to_gpu(self, memory_obj: Any, start: int, end: int, **more: Any) -> None:
        """Copy rows out of an object."""
        more["device"][:, :, start:end] = memory_obj.tensor

    def batched_from_gpu(self, objects: Any, starts: Any, ends: Any, **more: Any) -> None:
        """Copy rows into objects."""
        for each in zip(objects, starts, ends, strict=True):
            self.from_gpu(*each, **more)

    def batched_to_gpu(self, objects: Any, starts: Any, ends: Any, **more: Any) -> None:
        """Copy rows out of objects."""
        for each in zip(objects, starts, ends, strict=True):
            self.to_gpu(*each, **more)

    def get_shape(self, num_tokens: int) -> torch.Size:
        """The shape of an object."""
        return torch.Size([1, 1, num_tokens, self.width])


@dataclass
class Text:
    """A sequence: its tokens, its tags, its rows on the device, how many were found, and how many are stored."""

    tokens: list[int]
    tags: dict[str, str] | None
    device: Any
    found: int
    stored: int


class Pool:
    """An engine, and the sequences by number."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or config.batch != 1 or not config.page_size or not config.pages:
            raise ValueError(f"no pool of {config}")
        if config.granule == "row" and config.page_size > 1:
            raise Unsupported("LMCache finds whole chunks")
        self.config, self.size, self.pages = config, int(config.page_size), int(config.pages)
        self.dtype = np.dtype(DTYPES[config.dtype])
        self.widths = [config.kv_heads * d * self.dtype.itemsize for d in (config.k_dim, config.v_dim)]
        width = sum(self.widths)
        chunk = -(-width * self.size // ALIGNED) * ALIGNED
        how = LMCacheEngineConfig.from_defaults(
            chunk_size=self.size, local_cpu=True, max_local_cpu_size=(self.pages * chunk + 1) / 2**30
        )
        of = LMCacheMetadata("m", 1, 1, 0, 0, torch.uint8, (1, 1, self.size, 1, width), chunk_size=self.size)
        nothing = (lambda *_: None, lambda *_: None)
        self.engine = LMCacheEngine(how, of, ChunkedTokenDatabase(how, of), Device(width), *nothing)
        self.engine.post_init()
        self.names, self.all = count(), dict[int, Text]()
        finalize(self, _closed, self.engine)

    def match(self, wanted: Wanted) -> int:
        """Look chunks up."""
        tokens, tags = _asked(wanted)
        return int(self.engine.lookup(tokens, request_configs=tags))

    def request(self, wanted: Wanted, chunk: int | None, *rows: Array) -> tuple[int, int]:
        """Look chunks up, and load them."""
        (tokens, tags), hit = _asked(wanted), self.match(wanted)
        device = torch.zeros((1, 1, len(tokens), sum(self.widths)), dtype=torch.uint8)
        new = Text(tokens, tags, device[:, :, :hit], hit, hit)
        end = min(len(tokens), hit + (chunk or len(tokens)))
        self._demand_room(hit, end)
        if hit and int(self.engine.retrieve(tokens[:hit], **self._told(new)).sum()) != hit:
            raise RuntimeError(f"{hit} tokens were found, and fewer were loaded")
        self._computed(new, end, rows)
        number = next(i for i in count() if i not in self.all)
        self.all[number] = new
        return number, hit

    def _told(self, of: Text) -> dict[str, Any]:
        return {"device": of.device, "req_id": f"r{next(self.names)}", "request_configs": of.tags}

    def _demand_room(self, begin: int, end: int) -> None:
        """Refuse rows for which there are no pages: those that were found need none."""
        used = sum(-(-each.device.shape[2] // self.size) - each.found // self.size for each in self.all.values())
        if used + -(-end // self.size) - -(-begin // self.size) > self.pages:
            raise ValueError(f"no pages for {end - begin} tokens")

    def _computed(self, of: Text, end: int, rows: Sequence[Array]) -> None:
        """Put rows on the device, and store all but those that are there."""
        begin = of.device.shape[2]
        if end <= begin:
            return
        new = [np.ascontiguousarray(each[0, :, begin:end].swapaxes(0, 1)) for each in rows]
        of.device = torch.cat([of.device, torch.from_numpy(_bytes(new, end - begin))[None, None]], 2)
        if end // self.size > of.stored // self.size:
            mask = torch.arange(end) >= of.stored // self.size * self.size
            self.engine.store(of.tokens[:end], mask=mask, **self._told(of))
            of.stored = end

    def compute(self, sequence: int, n: int, *rows: Array) -> None:
        """Compute tokens that the request has."""
        of = self.all[sequence]
        begin = of.device.shape[2]
        end = min(begin + n, len(of.tokens))
        self._demand_room(begin, end)
        self._computed(of, end, rows)

    def answer(self, sequence: int, tokens: Sequence[int], *rows: Array) -> None:
        """Add tokens to the request, and compute all."""
        of = self.all[sequence]
        end = len(of.tokens) + len(tokens)
        self._demand_room(of.device.shape[2], end)
        of.tokens = [*of.tokens, *tokens]
        self._computed(of, end, rows)

    def finish(self, sequence: int) -> None:
        """Let the rows on the device go."""
        del self.all[sequence]

    def clear(self) -> None:
        """Forget all chunks."""
        if self.all:
            raise ValueError("sequences are in use")
        self.engine.clear()

    def sequences(self) -> list[int]:
        """Rows of each sequence."""
        numbers = range(max(self.all, default=-1) + 1)
        return [self.all[i].device.shape[2] if i in self.all else -1 for i in numbers]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows on the device."""
        found = self.all[sequence].device[0, 0].numpy()
        sides = np.split(found, [self.widths[0]], 1)
        shapes = (-1, self.config.kv_heads, self.config.k_dim), (-1, self.config.kv_heads, self.config.v_dim)
        read = (
            side.copy().reshape(-1).view(self.dtype).reshape(len(found), *shape[1:]).swapaxes(0, 1)
            for side, shape in zip(sides, shapes, strict=True)
        )
        return Pair(*read)


def _bytes(rows: Sequence[Array], n: int) -> Array:
    """The bytes of keys and values, `[tokens, width]`."""
    return np.concatenate([each.reshape(-1).view(np.uint8).reshape(n, -1) for each in rows], 1)


def _asked(wanted: Wanted) -> tuple[list[int], dict[str, str] | None]:
    """The tokens of a request, and its tags."""
    tokens, adapter, salt, _ = wanted
    if not tokens:
        raise ValueError("a request without tokens")
    tags = {"adapter": adapter, "salt": salt}
    return list(tokens), {f"lmcache.tag.{name}": value for name, value in tags.items() if value} or None


def _closed(engine: Any) -> None:
    """End an engine's threads, and give its loop back."""
    engine.close()
    engine.storage_manager.loop.close()


class Keyed:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        without = ["count", "propose", "accept", "abort", "evict", "media", "rows"]
        claim = {"level": "visible", "without": without, "duplicates": "any", "evicts": "any", "last": "found"}
        return {"name": "lmcache-keyed", "version": lmcache.__version__, "chapters": {"keyed": claim}}

    def open(self, kind: str, config: Config) -> Pool:
        """A fresh pool."""
        if kind != "keyed":
            raise Unsupported(f"no kind {kind}")
        return Pool(config)


keyed = Keyed
