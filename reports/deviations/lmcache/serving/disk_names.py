"""LMCache, its disk: rows of one tag are taken for those of another where a slash differs. A wrong result.

KEY-7, by hand: tags that are kept apart in the host's memory have one file, since its name has "-" for each "/".
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

how = {"local_cpu": False, "max_local_cpu_size": 0.01, "max_local_disk_size": 0.01, "chunk_size": 4}
config = LMCacheEngineConfig.from_defaults(local_disk=tempfile.mkdtemp(), **how)
of = LMCacheMetadata("m", 1, 1, 0, 0, torch.float32, (1, 2, 4, 1, 1))
store, found = StorageManager(config, of, EventManager()), ChunkedTokenDatabase(config, of).process_tokens
keys = [next(iter(found([1, 2, 3, 4], request_configs={"lmcache.tag.user": u})))[2] for u in ("a/b", "a-b")]
for number, key in enumerate(keys, 1):
    rows = store.allocate(of.get_shapes(4), of.get_dtypes())
    rows.tensor.fill_(number)
    store.batched_put([key], [rows])
    while not store.contains(key):
        time.sleep(0.01)
seen = [float(store.get(key).tensor.mean()) for key in keys]
print(f"lmcache {version('lmcache')}: rows of ones for user a/b, then of twos for user a-b, on a disk")
print(f"expected: [1.0, 2.0]\nseen:     {seen}")
store.close()
sys.exit(seen == [1.0, 2.0])
