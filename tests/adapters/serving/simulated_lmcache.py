"""LMCache's engine in random lives: requests are looked up, loaded, computed and stored, as its connector for vLLM
does it, over the host's memory and a disk, whole or layer by layer. There is no model: a row is 31 bits of its
history."""

from __future__ import annotations

import os
import random
from collections.abc import Generator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, NamedTuple

os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")
os.environ.setdefault("LMCACHE_LOG_LEVEL", "CRITICAL")
os.environ.setdefault("PYTHONHASHSEED", "0")

import torch
from lmcache.v1.cache_engine import LMCacheEngine
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.gpu_connector.gpu_connectors import VLLMPagedMemLayerwiseGPUConnector
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend import local_cpu_backend
from lmcache.v1.token_database import ChunkedTokenDatabase

from adapters.serving.kept_rows import Event, Lives, Store, Wrong, answered, row
from kvadapters.engines.lmcache_device import Device

LAYERS, CHUNK = 2, 4
AMPLE = 2000
"""Places that never fill."""
PAGE = 4096
"""Bytes that an object takes at least."""
SHAPES = ("memory", "memory and disk", "disk", "layers")
POLICIES = ("LRU", "LFU", "FIFO", "MRU")
VERBS = {"ask": 10, "load": 10, "leave": 2, "clear": 1, "wait": 2}
NAMES = ("", "", "", "a", "b")
"""Tags of requests: LMCache keeps rows with other tags apart."""


def told(name: str) -> dict[str, str] | None:
    """What a request says of itself."""
    return {"lmcache.tag.name": name} if name else None


def rows(name: str, text: list[int]) -> torch.Tensor:
    """The rows of a text, `[2, layers, tokens, 1]`; their bits are numbers."""
    parts = [[f"{what}{layer}" for layer in range(LAYERS)] for what in "kv"]
    ends = range(1, len(text) + 1)
    found = [[[[row(part, name, text[:end]) >> 1] for end in ends] for part in layers] for layers in parts]
    return torch.tensor(found, dtype=torch.int32)


class DeviceByLayers(VLLMPagedMemLayerwiseGPUConnector):  # type: ignore[misc]
    """A device that is moved to and from layer by layer: an object has `[tokens, 2, 1]`."""

    def __init__(self) -> None:
        pass

    def batched_from_gpu(self, objects: Any, starts: Any, ends: Any, **more: Any) -> Generator[None, None, None]:
        yield
        for layer, there in enumerate(objects):
            for each, start, end in zip(there, starts, ends, strict=True):
                each.tensor.copy_(more["device"][:, layer, start:end].transpose(0, 1))
            yield

    def batched_to_gpu(self, starts: Any, ends: Any, **more: Any) -> Generator[None, Any, None]:
        for layer in range(LAYERS):
            there = yield
            for each, start, end in zip(there, starts, ends, strict=True):
                more["device"][:, layer, start:end] = each.tensor.transpose(0, 1)
        yield
        yield

    def get_shape(self, num_tokens: int) -> torch.Size:
        return torch.Size([num_tokens, 2, 1])


class Request(NamedTuple):
    """A request that was looked up: under which number, and how many tokens were found."""

    number: str
    event: Event
    found: int
    cleared: int


class Engine(Store):
    """An engine with few places, and requests that are under way."""

    def __init__(self, seed: int, shape: str | None = None, **fixed: Any) -> None:
        super().__init__()
        draw = random.Random(seed)
        self.shape = shape or draw.choice(SHAPES)
        self.places = fixed.get("places", draw.choice([14, 24, AMPLE]))
        self.on_disk = fixed.get("on_disk", draw.choice([10, AMPLE]))
        self.folder, self.open, self.asked = TemporaryDirectory(prefix="kvconform-lmcache-"), [], 0
        self.there, self.cleared = set[tuple[str, tuple[int, ...]]](), 0
        how = {
            "chunk_size": CHUNK,
            "local_cpu": self.shape != "disk",
            "max_local_cpu_size": (self.places * PAGE + 1) / 2**30,
            "cache_policy": fixed.get("policy", draw.choice(POLICIES)),
            "save_unfull_chunk": draw.random() < 0.3 and self.shape != "layers",
            "use_layerwise": self.shape == "layers",
        }
        if "disk" in self.shape:
            how |= {"local_disk": self.folder.name, "max_local_disk_size": (self.on_disk * PAGE + 1) / 2**30}
        self.config = LMCacheEngineConfig.from_defaults(**how)
        of = LMCacheMetadata("m", 1, 1, 0, 0, torch.int32, (LAYERS, 2, CHUNK, 1, 1), chunk_size=CHUNK)
        device = DeviceByLayers() if self.shape == "layers" else Device(2, LAYERS, 1)
        pools = (lambda *_: None, lambda *_: None)
        self.engine = LMCacheEngine(self.config, of, ChunkedTokenDatabase(self.config, of), device, *pools)
        self.engine.post_init()
        self.of = self.engine.storage_manager.storage_backends
        self.memory, self.disk = self.of["LocalCPUBackend"], self.of.get("LocalDiskBackend")

    def chunks(self, name: str, text: list[int]) -> list[tuple[str, tuple[int, ...]]]:
        """What the rows of a text are found by: each chunk by all tokens up to its end."""
        ends = [*range(CHUNK, len(text) + 1, CHUNK)]
        ends += [len(text)] if self.config.save_unfull_chunk and len(text) % CHUNK else []
        return [(name, tuple(text[:end])) for end in ends]

    def may(self, name: str, text: list[int]) -> int:
        """Count the tokens of a text whose chunks may be there."""
        found = 0
        for chunk in self.chunks(name, text):
            if chunk not in self.there:
                break
            found = len(chunk[1])
        return found

    def do(self, event: Event) -> None:
        CLOCK.slept = 0
        if event.verb == "ask":
            self.ask(event)
        elif event.verb == "wait":
            self.settle()
        elif event.verb == "clear":
            self.clear(event)
        elif self.open:
            request = self.open.pop(event.n % len(self.open))
            if event.verb == "load":
                self.load(request)
            self.engine.lookup_unpin(request.number)

    def ask(self, event: Event) -> None:
        """Look a request up, and pin what is found. Who loads from a disk must pin nothing else."""
        if len(self.open) > (not self.disk):
            return
        number, self.asked = f"r{self.asked}", self.asked + 1
        text = list(event.text)
        found = self.engine.lookup(text, lookup_id=number, pin=True, request_configs=told(event.name))
        self.open.append(Request(number, event, found, self.cleared))
        may = self.may(event.name, text)
        self.demand(found <= may, f"{found} tokens of {text} are found, and {may} were stored")
        ample = self.places == self.on_disk == AMPLE and not self.busy()
        self.demand(found == may or not ample, f"{found} tokens of {text} are found, and {may} are stored")
        self.counts["hits"] += found > 0
        self.counts["reused"] += found

    def clear(self, event: Event) -> None:
        """Forget a text."""
        self.settle()
        self.engine.clear(list(event.text), request_configs=told(event.name))
        self.there -= {*self.chunks(event.name, list(event.text))}
        self.cleared += 1

    def load(self, request: Request) -> None:
        """Load what was found, behind what the device has already; compute the rest, and store all."""
        (_, text, name, n), text_ = request.event, list(request.event.text)
        had = min(n % 3 * CHUNK, request.found // CHUNK * CHUNK)
        right = rows(name, text_)
        device = torch.full_like(right, -1)
        mask = torch.arange(len(text_)) >= had
        how = {"device": device, "req_id": request.number, "request_configs": told(name)}
        loaded = self.loaded(text_, mask, how) if request.found > had else torch.zeros_like(mask)
        end = had + int(loaded.sum())
        there = end >= request.found or self.cleared > request.cleared
        self.demand(there, f"of {request.found} tokens {end} are there")
        self.demand(bool(loaded[had:end].all()), f"not all rows from {had} to {end} were loaded")
        wrong = [p for p in range(had, end) if not torch.equal(device[:, :, p], right[:, :, p])]
        self.demand(not wrong, f"{wrong[:1]} of {text} has another row")
        self.demand(bool((device[:, :, end:] == -1).all()), f"rows behind {end} were written")
        whole = answered(text, 1 + n)
        self.store(name, whole, {**how, "device": rows(name, whole)}, min(had, end))

    def loaded(self, text: list[int], mask: Any, how: dict[str, Any]) -> Any:
        """Load rows, and say which."""
        if self.shape != "layers":
            return self.engine.retrieve(text, mask, **how)
        return [*self.engine.retrieve_layer(text, mask, **how)][-1]

    def store(self, name: str, text: list[int], how: dict[str, Any], had: int) -> None:
        """Store rows, but for those that were there before."""
        mask = torch.arange(len(text)) >= had
        self.there |= {*self.chunks(name, text)[had // CHUNK :]}
        if self.shape != "layers":
            self.engine.store(text, mask=mask, **how)
        for _ in self.engine.store_layer(text, mask, **how) if self.shape == "layers" else ():
            pass

    def busy(self) -> bool:
        """Tell whether rows are on their way to the disk."""
        return bool(self.disk and self.disk.disk_worker.put_tasks)

    def settle(self) -> None:
        """Wait until all rows are on the disk."""
        late = monotonic() + 10
        while self.busy():
            self.demand(monotonic() < late, "rows are on their way to the disk, and do not come there")
            sleep(0.0005)

    def end(self) -> None:
        while self.open:
            self.engine.lookup_unpin(self.open.pop().number)
        self.settle()
        late = monotonic() + 1
        while monotonic() < late and any(each.get_ref_count() > 1 for each in self.memory.hot_cache.values()):
            sleep(0.001)
        kept = [*self.memory.hot_cache.values()]
        self.demand(all(each.get_ref_count() == 1 for each in kept), "an object that nobody uses is referred to")
        self.demand(not any(each.is_pinned for each in kept), "an object is pinned, and nobody pins it")
        size = sum(each.get_physical_size() for each in kept)
        self.demand(self.taken() == size, f"{self.taken()} bytes are taken, and objects have {size}")
        self.demand(self.engine.health() == 0, "its own check of the memory fails")
        if self.disk:
            self.demand_disk()

    def taken(self) -> int:
        """Count the bytes of the host's memory that are taken."""
        return int(self.memory.memory_allocator.pin_allocator.total_allocated_size)

    def demand_disk(self) -> None:
        """Demand that the files are those that the disk's table has, each whole."""
        files = {str(path): path.stat().st_size for path in Path(self.folder.name).rglob("*.pt")}
        table = {each.path for each in self.disk.dict.values()}
        self.demand(table == {*files}, f"{len(table)} files are in the table, and {len(files)} are there")
        pinned = [each for each in self.disk.dict.values() if each.is_pinned]
        self.demand(not pinned, "a file is pinned, and nobody pins it")
        size = sum(each.size for each in self.disk.dict.values())
        counted = self.disk.current_cache_size
        known = bool(self.cleared)  # https://github.com/LMCache/LMCache/issues/4546: what is cleared stays counted
        self.demand(counted == size or known, f"the disk counts {counted:.0f} bytes and has {size}")

    def close(self) -> None:
        self.engine.close()
        self.engine.storage_manager.loop.close()  # it has stopped by then, and holds two sockets
        self.folder.cleanup()


class Clock:
    """What LMCache waits by where no memory is free. It may wait for the disk, and for nobody else."""

    slept = 0

    def sleep(self, seconds: float) -> None:
        """Wait a little. Raises Wrong where the wait has no end."""
        self.slept += 1
        if self.slept > 200:
            raise Wrong("it waits for memory that nobody will give back")
        sleep(0.005)


CLOCK = local_cpu_backend.time = Clock()


def lives(shape: str | None = None, names: Sequence[str] = NAMES, clear: int = 1, **fixed: Any) -> Lives:
    """Lives of engines over these stores, or any; `clear` is how often a text is cleared."""
    return Lives(lambda seed: Engine(seed, shape, **fixed), {**VERBS, "clear": clear}, names)
