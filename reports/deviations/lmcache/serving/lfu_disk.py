"""LMCache, its disk with LFU: storing fails while an earlier row is on its way to the disk. A wrong result.

By hand: the policy knows a key as soon as its rows are sent, and the disk's table when they are there. Where room
is needed in between, the policy asks the table for a key that it does not have.
"""

import os
import sys
import tempfile
import time
from importlib.metadata import version

os.environ |= {"LMCACHE_TRACK_USAGE": "false", "LMCACHE_LOG_LEVEL": "CRITICAL"}
import torch
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.event_manager import EventManager
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend.storage_manager import StorageManager
from lmcache.v1.token_database import ChunkedTokenDatabase

how = {"local_cpu": False, "max_local_cpu_size": 0.01, "max_local_disk_size": 2.5 * 4096 / 2**30, "chunk_size": 4}
config = LMCacheEngineConfig.from_defaults(local_disk=tempfile.mkdtemp(), cache_policy="LFU", **how)
of = LMCacheMetadata("m", 1, 1, 0, 0, torch.float32, (1, 2, 4, 1, 1))  # a chunk takes 4096 bytes
store, found = StorageManager(config, of, EventManager()), ChunkedTokenDatabase(config, of).process_tokens
disk = store.storage_backends["LocalDiskBackend"]
written = disk.write_file
disk.write_file = lambda *args: (time.sleep(0.2), written(*args))  # a slow disk


def put(text):
    keys = [key for _, _, key in found(text)]
    store.batched_put(keys, [store.allocate(of.get_shapes(4), of.get_dtypes()) for _ in keys])
    while disk.disk_worker.put_tasks:
        time.sleep(0.01)


_ = put([1, 2, 3, 4]), put([1, 2, 3, 4])  # it is used twice
try:
    seen = put([5, 6, 7, 8, 9, 10, 11, 12]) or "stored"
except KeyError as e:
    seen = f"KeyError: {type(e.args[0]).__name__}"
print(f"lmcache {version('lmcache')}, LFU: two chunks more, where the disk has room for two")
print(f"expected: stored\nseen:     {seen}")
put([])
store.close()
sys.exit(seen == "stored")
