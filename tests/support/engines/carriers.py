"""An adapter whose parcels each cross a real carrier: `support.engines.carriers:opencl__safetensors`.

What is packed is handed to the carrier and read back from it before the suite sees it, so the chapter MOVE judges
what arrives.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np

from kvadapters.find import load
from kvspec.contract import CHAPTERS
from kvspec.geometry import Array, Config
from kvspec.parcels import Parcel
from support.engines.interchange import CLAIMS

Carry = Callable[[Parcel], Parcel]
"""Takes a parcel to where it is read again."""


def by_file(parcel: Parcel, folder: Path) -> Parcel:
    """Write a parcel to two files, its descriptor and its bytes, and read them."""
    about, data = folder / "descriptor.json", folder / "rows.bin"
    about.write_text(json.dumps({**parcel.descriptor, "bytes": len(parcel.keys)}), encoding="utf-8")
    data.write_bytes(parcel.keys + parcel.values)
    found, rows = json.loads(about.read_text(encoding="utf-8")), data.read_bytes()
    end = found.pop("bytes")
    return Parcel(found, rows[:end], rows[end:])


def by_safetensors(parcel: Parcel, folder: Path) -> Parcel:
    """Write a parcel to a safetensors file: two tensors of bytes, and the descriptor as metadata."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    tensors = {"keys": np.frombuffer(parcel.keys, np.uint8), "values": np.frombuffer(parcel.values, np.uint8)}
    path = folder / "parcel.safetensors"
    save_file(tensors, path, metadata={"parcel": json.dumps(parcel.descriptor)})
    with safe_open(path, framework="np") as opened:
        keys, values = (opened.get_tensor(name).tobytes() for name in ("keys", "values"))
        return Parcel(json.loads(opened.metadata()["parcel"]), keys, values)


ROOM = 1 << 22
"""Bytes of the memory that agents of NIXL register."""


class ByNixl:
    """Two agents of NIXL in this process, over loopback: what one has in its memory the other reads."""

    def __init__(self) -> None:
        from nixl_cu12 import _api as nixl

        how = nixl.nixl_agent_config(backends=["UCX"])
        self._sender, self._reader = (nixl.nixl_agent(name, how) for name in ("sender", "reader"))
        self._there, self._here = np.zeros(ROOM, np.uint8), np.zeros(ROOM, np.uint8)
        for agent, memory in ((self._sender, self._there), (self._reader, self._here)):
            agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "")], "DRAM")
        self._name = self._reader.add_remote_agent(self._sender.get_agent_metadata())

    def __call__(self, parcel: Parcel, folder: Path) -> Parcel:
        """Have the descriptor and all bytes read by the other agent. Raises ValueError where they are more than the
        memory has room for, and RuntimeError if the transfer fails."""
        about = json.dumps(parcel.descriptor).encode()
        ends = np.cumsum([len(about), len(parcel.keys), len(parcel.values)])
        self._there[: ends[2]] = np.frombuffer(about + parcel.keys + parcel.values, np.uint8)
        self._here[:] = 0xFF
        self._read(int(ends[2]))
        said, keys, values = (part.tobytes() for part in np.split(self._here[: ends[2]], ends[:2]))
        return Parcel(json.loads(said), keys, values)

    def _read(self, size: int) -> None:
        own, other = ([(a.ctypes.data, size, 0)] for a in (self._here, self._there))
        ends = (self._reader.get_xfer_descs(place, "DRAM") for place in (own, other))
        moving = self._reader.initialize_xfer("READ", *ends, self._name)
        self._reader.transfer(moving)
        while (state := self._reader.check_xfer_state(moving)) == "PROC":
            sleep(0)
        self._reader.release_xfer_handle(moving)
        if state != "DONE":
            raise RuntimeError(f"the transfer ended with {state}")


class ByLMCache:
    """LMCache's backend of the host's memory, or that of a disk; bytes lie in a tensor as keys and values of tokens
    do, `[2, 1 layer, 1 token, bytes]`."""

    def __init__(self, disk: bool) -> None:
        from lmcache.v1 import config as of_engine
        from lmcache.v1.metadata import LMCacheMetadata
        from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend
        from lmcache.v1.storage_backend.local_disk_backend import LocalDiskBackend
        from torch import uint8

        self._folder, self._number = TemporaryDirectory(prefix="kvconform-lmcache-"), 0
        sizes = {"max_local_cpu_size": 0.05, "max_local_disk_size": 0.05}  # GiB
        config = of_engine.LMCacheEngineConfig.from_defaults(
            local_cpu=True, local_disk=self._folder.name, chunk_size=16, **sizes
        )
        self._of = LMCacheMetadata(
            model_name="m",
            world_size=1,
            local_world_size=1,
            worker_id=0,
            local_worker_id=0,
            kv_dtype=uint8,
            kv_shape=(1, 2, 16, 1, 8),
        )
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        self._memory = self._backend = LocalCPUBackend(config, self._of, "cpu")
        if disk:
            self._backend = LocalDiskBackend(config, self._loop, self._memory, "cpu", metadata=self._of)

    def __call__(self, parcel: Parcel, folder: Path) -> Parcel:
        """Store a parcel and load it again. Raises RuntimeError where it is not there within 20 seconds."""
        about = json.dumps(parcel.descriptor).encode()
        data = np.frombuffer(about + parcel.keys + parcel.values, np.uint8)
        found = self._stored(np.concatenate([data, np.zeros(data.size % 2, np.uint8)]))
        ends = np.cumsum([len(about), len(parcel.keys), len(parcel.values)])
        said, keys, values = (part.tobytes() for part in np.split(found[: ends[2]], ends[:2]))
        return Parcel(json.loads(said), keys, values)

    def _stored(self, data: Array) -> Array:
        """What is loaded of these bytes, an even number of them."""
        from lmcache.utils import CacheEngineKey
        from lmcache.v1.memory_management import MemoryFormat
        from torch import Size, from_numpy, uint8

        self._number += 1
        key = CacheEngineKey("m", 1, 0, self._number, uint8)
        given = self._memory.allocate(Size([2, 1, 1, data.size // 2]), uint8, MemoryFormat.KV_2LTD)
        given.tensor.copy_(from_numpy(data).reshape(given.tensor.shape))
        self._backend.submit_put_task(key, given)
        given.ref_count_down()
        late = monotonic() + 20
        while not self._backend.contains(key):
            if monotonic() > late:
                raise RuntimeError("what was stored is not there")
            sleep(0)
        loaded = self._backend.get_blocking(key)
        found: Array = loaded.tensor.flatten().numpy().copy()
        loaded.ref_count_down()
        self._backend.remove(key)
        return found


By = Callable[[Parcel, Path], Parcel]

CARRIERS: Mapping[str, Callable[[], By]] = {
    "file": lambda: by_file,
    "safetensors": lambda: by_safetensors,
    "nixl": ByNixl,
    "lmcache_memory": lambda: ByLMCache(disk=False),
    "lmcache_disk": lambda: ByLMCache(disk=True),
}
"""What makes each carrier, by name. Without its library it raises ImportError as it is made, or used."""


class Through:
    """An adapter whose parcels go through a carrier."""

    def __init__(self, adapter: str, carrier: str) -> None:
        self.name, self.adapter = f"{adapter} through {carrier}", load(adapter)
        self.folder = TemporaryDirectory(prefix="kvconform-parcels-")
        self.carry: Carry = partial(self._carried, CARRIERS[carrier]())

    def _carried(self, by: By, parcel: Parcel) -> Parcel:
        return by(parcel, Path(self.folder.name))

    def describe(self) -> dict[str, Any]:
        """What it claims of caches and parcels."""
        return {"name": self.name, "chapters": {c: "visible" for c in CHAPTERS if c in CLAIMS}}

    def open(self, kind: str, config: Config) -> Any:
        """A cache of the adapter."""
        return Packed(self.adapter.open(kind, config), self.carry)


class Packed:
    """A cache, and what becomes of its parcels."""

    def __init__(self, cache: Any, carry: Carry) -> None:
        self.cache, self.carry = cache, carry

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)

    def pack(self, *of: int) -> Parcel | list[Parcel]:
        """What arrives of what was packed; of layers each part by itself."""
        made = self.cache.pack(*of)
        return list(map(self.carry, made)) if isinstance(made, list) else self.carry(made)


def name(adapter: str, carrier: str) -> str:
    """Name an adapter with a carrier as `kvconform run` takes it."""
    return f"{__name__}:{adapter.replace('-', '_')}__{carrier}"


def __getattr__(pair: str) -> Any:
    adapter, found, carrier = pair.partition("__")
    if not (adapter and found and carrier in CARRIERS):
        raise AttributeError(pair)
    return partial(Through, adapter.replace("_", "-"), carrier)
